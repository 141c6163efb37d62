// The system's zlib, for the trait ContentDecoding.
#include <zlib.h>
