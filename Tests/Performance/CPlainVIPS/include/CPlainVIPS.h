#ifndef C_PLAIN_VIPS_H
#define C_PLAIN_VIPS_H

#include <stdbool.h>
#include <stddef.h>

/// Decodes an image into `side` × `side` pixels like libvips' own program, with `vips_thumbnail_buffer`. With
/// `in_full`, the image is decoded in full size and then resized.
///
/// `threads`: the number of threads that libvips uses. After the call, it is one again, as this package sets it.
/// libvips must have been started.
///
/// Returns the number of bytes of the pixels, or 0 on failure.
size_t etagere_plain_vips_thumbnail(const void *bytes, size_t count, int side, int threads, bool in_full);

#endif
