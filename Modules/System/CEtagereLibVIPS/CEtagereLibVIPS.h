// The system's libvips, for the trait VIPS.
#include <vips/vips.h>
