#pragma once
#define FACTOR 2
// A string of this kind names the file that the compiler read.
inline const char* where() { return __FILE__; }
