#include "assembler.h"

#include "emitter.h"
#include "parser.h"
#include "verifier.h"

namespace ptoas {

Expected<std::string, Diagnostics> assemble(const Source& source, std::string_view arch) {
  auto module = parse(source);
  if (!module) return Unexpected{Diagnostics{std::move(module.error())}};
  auto checked = verify(std::move(*module), arch);
  if (!checked) return Unexpected{std::move(checked.error())};
  return emit(*checked, source);
}

}  // namespace ptoas
