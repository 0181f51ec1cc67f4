// Damaged text always ends in output or in an error at a place of the text. The damage is the same
// in every run: no seed comes from outside.
#include <random>
#include <string>
#include <vector>

#include "../assembler.h"
#include "../lexer.h"
#include "check.h"
#include "samples.h"

namespace {

using namespace ptoas;
using namespace ptoas::test;

constexpr int kRounds = 20000;

class Damage {
 public:
  explicit Damage(std::vector<std::string> corpus) : corpus_(std::move(corpus)) {
    for (const InstructionSpec& spec : instruction_table()) words_.emplace_back(spec.mnemonic);
    for (const ScalarSpec& spec : scalar_table()) words_.emplace_back(spec.mnemonic);
    for (const ElementInfo& element : all_elements()) words_.emplace_back(element.name);
    for (const char* word : {"%0",
                             "%c0",
                             "%t#1",
                             "@f",
                             "-1",
                             "0",
                             "9223372036854775808",
                             "0xFFFFFFFFFFFFFFFFF",
                             "1e400",
                             "-0x1",
                             "\"\\",
                             "\"",
                             "->",
                             "{",
                             "}",
                             "(",
                             ")",
                             "[",
                             "]",
                             "<",
                             ">",
                             "!",
                             "?",
                             "#pto<",
                             ":",
                             "scf.for",
                             "scf.if",
                             "scf.while",
                             "scf.condition",
                             "pto.load_scalar",
                             "pto.store_scalar",
                             "^bb0",
                             "scf.yield",
                             "else",
                             "return",
                             "loc(",
                             "iter_args(",
                             "?x?x",
                             "0x0xf32",
                             "module",
                             "attributes",
                             "valid_row = %n",
                             "addr = %c0",
                             "v_row=?",
                             "rows=1048576",
                             "//",
                             "\n",
                             "\t",
                             " "}) {
      words_.emplace_back(word);
    }
    words_.emplace_back(1, '\0');
    words_.emplace_back("\xff\xfe");
  }

  // Half of the damage is done to tokens, so that it reaches past the parser.
  std::string next() {
    std::string text = corpus_[pick(corpus_.size())];
    const bool tokens = pick(2) == 0;
    for (std::size_t edits = 1 + pick(4); edits > 0; --edits) {
      if (tokens) {
        exchange(text);
      } else {
        edit(text);
      }
    }
    return text;
  }

 private:
  std::size_t pick(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  // Puts a token's text in place of another of its kind.
  void exchange(std::string& text) {
    std::vector<Token> tokens;
    for (Position at = 0;;) {
      const auto token = next_token(text, at);
      if (!token || token->kind == TokenKind::End) break;
      tokens.push_back(*token);
      at = token->end;
    }
    if (tokens.empty()) return;
    const Token to = tokens[pick(tokens.size())];
    std::vector<Token> same;
    for (const Token& token : tokens) {
      if (token.kind == to.kind) same.push_back(token);
    }
    const Token from = same[pick(same.size())];
    const std::string replacement = text.substr(from.position, from.end - from.position);
    text.replace(to.position, to.end - to.position, replacement);
  }

  void edit(std::string& text) {
    const std::size_t at = pick(text.size() + 1);
    const std::size_t length = pick(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (pick(7)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, words_[pick(words_.size())]);
        break;
      case 2:
        text.replace(at, length, words_[pick(words_.size())]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << pick(8)));
        break;
      case 4:
        text.insert(at, text.substr(pick(text.size() + 1), 1 + pick(120)));
        break;
      case 5:
        text.resize(at);
        break;
      default: {
        const std::string& other = corpus_[pick(corpus_.size())];
        text.replace(at, length, other.substr(pick(other.size() + 1), 1 + pick(200)));
      }
    }
  }

  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
  std::minstd_rand random_{20240607};
};

void try_one(const std::string& text, int& accepted) {
  auto source = Source::from_text("f", text);
  if (!source) return;
  const auto output = assemble(*source, "");
  if (output) {
    ++accepted;
    CHECK(!output->empty());
    return;
  }
  CHECK(!output.error().empty());
  for (const Diagnostic& diagnostic : output.error()) {
    CHECK(!diagnostic.message.empty());
    CHECK(diagnostic.position <= text.size());
    CHECK(!source->render(diagnostic).empty());
  }
}

}  // namespace

int main() {
  const std::vector<std::string> corpus = all_samples();
  Damage damage(corpus);
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) try_one(damage.next(), accepted);
  // Damage that always or never is noticed would test nothing.
  std::printf("%d of %d damaged texts were still valid\n", accepted, kRounds);
  CHECK(accepted > kRounds / 200);
  CHECK(accepted < kRounds / 2);
  // Every beginning of a text that has everything.
  int whole = 0;
  for (std::size_t length = 0; length < kStructure.size(); ++length) {
    try_one(std::string(kStructure.substr(0, length)), whole);
  }
  CHECK(whole <= 1);  // without the last line break it is still complete
  return result();
}
