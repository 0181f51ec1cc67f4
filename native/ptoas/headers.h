// The headers of the instruction set, as emitted text includes them. Tables name for each of their
// rows the one that declares what the row's C++ calls.
#pragma once

#include <set>
#include <string_view>

namespace ptoas {

// In the order in which they are written.
using Headers = std::set<std::string_view>;

namespace header {

constexpr std::string_view kBitwise = "pto/sim/bitwise.hpp";
constexpr std::string_view kConvert = "pto/sim/convert.hpp";
constexpr std::string_view kDtypes = "pto/sim/dtypes.hpp";
constexpr std::string_view kElementwise = "pto/sim/elementwise.hpp";
constexpr std::string_view kExpand = "pto/sim/expand.hpp";
constexpr std::string_view kFault = "pto/sim/fault.hpp";
constexpr std::string_view kGlobalTensor = "pto/sim/global_tensor.hpp";
constexpr std::string_view kMatmul = "pto/sim/matmul.hpp";
constexpr std::string_view kMoves = "pto/sim/moves.hpp";
constexpr std::string_view kReduce = "pto/sim/reduce.hpp";
constexpr std::string_view kRemainder = "pto/sim/remainder.hpp";
constexpr std::string_view kScalarOps = "pto/sim/scalar_ops.hpp";
constexpr std::string_view kSelect = "pto/sim/select.hpp";
constexpr std::string_view kTile = "pto/sim/tile.hpp";
constexpr std::string_view kTransfer = "pto/sim/transfer.hpp";
constexpr std::string_view kTrigonometry = "pto/sim/trigonometry.hpp";

}  // namespace header
}  // namespace ptoas
