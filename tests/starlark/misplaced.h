// A header outside include/: the SDK rule has to refuse it.
#pragma once
