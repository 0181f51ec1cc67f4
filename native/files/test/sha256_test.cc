// Known digests, and that many messages at once give what each gives alone.
#include "../sha256.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"

namespace pypto_native {
namespace {

std::string hexadecimal(const Sha256& digest) {
  std::string text;
  char pair[3];
  for (const unsigned char byte : digest) {
    std::snprintf(pair, sizeof pair, "%02x", byte);
    text += pair;
  }
  return text;
}

Message message_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

Sha256 alone(const Message& message) {
  Sha256Hasher hasher;
  // In uneven pieces, so that blocks are cut.
  for (size_t at = 0; at < message.bytes; at += 37) {
    hasher.update(message.data + at, std::min<size_t>(37, message.bytes - at));
  }
  return hasher.finish();
}

void known_digests() {
  const Message messages[] = {
      message_of(""), message_of("abc"),
      message_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")};
  Sha256 digests[3];
  sha256_messages(messages, 3, digests);
  CHECK(hexadecimal(digests[0]) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hexadecimal(digests[1]) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hexadecimal(digests[2]) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

// Every length around one and two blocks, in every order of long and short.
void lengths_side_by_side() {
  std::string text(4096, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 + i / 7);
  for (size_t other : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{1000}, size_t{4096}}) {
    std::vector<Message> messages;
    for (size_t length = 0; length <= 200; ++length) {
      messages.push_back(message_of(std::string_view(text).substr(0, length)));
      if (length % 3 == 0) messages.push_back(message_of(std::string_view(text).substr(0, other)));
    }
    std::vector<Sha256> digests(messages.size());
    sha256_messages(messages.data(), messages.size(), digests.data());
    for (size_t i = 0; i < messages.size(); ++i) CHECK(digests[i] == alone(messages[i]));
  }
}

}  // namespace
}  // namespace pypto_native

int main() {
  pypto_native::known_digests();
  pypto_native::lengths_side_by_side();
  return pypto_native::test::result();
}
