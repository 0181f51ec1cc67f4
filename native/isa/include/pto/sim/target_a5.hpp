// Forced into every kernel compiled for a5sim. The admission macro comes from the SDK's target
// table: a compile that does not go through that table is not a compile for this target.
#ifndef PTO_SIM_TARGET_HPP_
#define PTO_SIM_TARGET_HPP_

#if !defined(PTO_SIM_ADMITTED_A5) || PTO_SIM_ADMITTED_A5 != 1
#error "not admitted to target a5sim: compile with the flags of the SDK's sdk.json"
#endif
#if defined(__DAV_VEC__) == defined(__DAV_CUBE__)
#error "target a5sim needs exactly one of __DAV_VEC__ (aiv) and __DAV_CUBE__ (aic)"
#endif

#define PTO_SIM_ARCH_ID 2

#endif  // PTO_SIM_TARGET_HPP_
