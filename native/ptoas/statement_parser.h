// The operations inside a function.
#pragma once

#include <vector>

#include "ast.h"
#include "token_stream.h"

namespace ptoas {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& tokens) : tokens_(tokens) {}

  Parsed<Statement> parse();

 private:
  // Reads what follows the mnemonic. A row of the table of forms in the .cc file.
  using Form = Parsed<Done> (StatementParser::*)(const Token& mnemonic, Statement& statement);
  struct FormRow;
  static const FormRow kForms[];

  Parsed<Done> parse_constant(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_scalar(const Token& mnemonic, const ScalarSpec& spec, Statement& statement);
  Parsed<Done> parse_make_view(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_partition(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_alloc_tile(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_set_valid_shape(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_instruction(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_for(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_if(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_while(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_load_element(const Token& mnemonic, Statement& statement);
  Parsed<Done> parse_store_element(const Token& mnemonic, Statement& statement);

  Parsed<Done> parse_results(Statement& statement);
  Parsed<Operand> parse_operand();
  Parsed<std::vector<Operand>> parse_operand_list();
  Parsed<TypeUse> parse_type_use();
  Parsed<Done> parse_typed_group(std::vector<Operand>& operands, std::vector<TypeUse>& types);
  Parsed<std::vector<TypeUse>> parse_result_types();
  Parsed<Done> parse_carried(std::vector<Result>& carried, std::vector<Operand>& initial);
  Parsed<std::vector<TypeUse>> parse_type_group();
  Parsed<std::vector<Parameter>> parse_block_arguments();
  Parsed<Block> parse_block(std::string_view terminator = "scf.yield");

  TokenStream& tokens_;
  int depth_ = 0;
};

}  // namespace ptoas
