#ifndef C_PLAIN_VIPS_H
#define C_PLAIN_VIPS_H

#include <stdbool.h>
#include <stddef.h>

/// The pixels of a picture that fits into `side` × `side`, made by libvips as its own program does it: `vips_thumbnail_buffer`. With `in_full` the picture is decoded in its
/// full size first, and then resized.
///
/// `threads`: how many libvips takes for it; afterwards it is one again, as this package sets it. libvips has to be started.
///
/// Returns how many bytes the pixels have, and 0 when there are none.
size_t etagere_plain_vips_thumbnail(const void *bytes, size_t count, int side, int threads, bool in_full);

#endif
