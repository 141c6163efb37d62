#ifndef CVIPS_H
#define CVIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// libvips, without its variadic calls and without its headers. Functions that make an image return a new reference, to be given back with etagere_vips_release, or
// null, and then the reason is in etagere_vips_take_error. Without the trait VIPS there is nothing behind this header, and nobody calls it.

typedef struct etagere_vips_image etagere_vips_image;

/// Starts libvips, once in a process: nothing kept between operations, one thread for an evaluation, loaders that read strangers' files alone, no warnings on standard error.
/// 0 when it worked.
int etagere_vips_start(void);

/// The library's version: "8.14.1".
const char *etagere_vips_version(void);

/// The reasons of what has failed, and forgets them. Given back with etagere_vips_free; null where there are none. The library has one list for all threads.
char *etagere_vips_take_error(void);

void etagere_vips_free(void *memory);
void etagere_vips_release(etagere_vips_image *image);

/// Whether there is an operation of this name, which is not blocked.
bool etagere_vips_has(const char *operation);

/// Opens a file in memory, which has to stay where it is for as long as the image, and whatever is made of it, lives.
/// `pages`: how many frames, -1 for all of them, 0 where the loader knows no frames. `strict`: whether damage is an error.
/// `shrink`: how much smaller a JPEG is decoded, 1, 2, 4 or 8. `scale`: how much larger or smaller a WebP or an SVG is. 0 where a loader doesn't know it.
etagere_vips_image *etagere_vips_open(
    const void *bytes, size_t count, const char *loader, int pages, bool strict, int shrink, double scale);

/// An image of pixels in memory, which have to stay where they are.
etagere_vips_image *etagere_vips_wrap(const void *pixels, size_t count, int width, int height, int bands);

int etagere_vips_width(const etagere_vips_image *image);
int etagere_vips_height(const etagere_vips_image *image);
int etagere_vips_bands(const etagere_vips_image *image);
bool etagere_vips_has_alpha(const etagere_vips_image *image);
/// Bits of one number.
int etagere_vips_depth(const etagere_vips_image *image);
bool etagere_vips_is_cmyk(const etagere_vips_image *image);
/// A field of its header; `missing` where there is none.
int etagere_vips_number(const etagere_vips_image *image, const char *name, int missing);
/// A list of a header's fields, owned by the image; null where there is none.
const int *etagere_vips_numbers(const etagere_vips_image *image, const char *name, int *count);
/// The embedded profile's bytes, owned by the image; null where there is none.
const void *etagere_vips_profile(const etagere_vips_image *image, size_t *count);
/// Whether that profile can be used with this image.
bool etagere_vips_profile_fits(etagere_vips_image *image);

/// Turned and mirrored by EXIF's orientation, 1 to 8. The image's pixels are in memory: they are not read in order.
etagere_vips_image *etagere_vips_upright(etagere_vips_image *image, int orientation);
/// In sRGB, or grey, 8 bits a number. A profile that does not fit is passed over.
etagere_vips_image *etagere_vips_standard(etagere_vips_image *image);
/// Exactly so large. Reads in order.
etagere_vips_image *etagere_vips_resize(etagere_vips_image *image, int width, int height);
/// Where the part of a size begins that draws the eye.
bool etagere_vips_attention(etagere_vips_image *image, int width, int height, int *x, int *y);
/// The first bands of it.
etagere_vips_image *etagere_vips_first_bands(etagere_vips_image *image, int count);

/// Asked now and then, on the thread that evaluates; true ends the evaluation.
typedef bool (*etagere_vips_stop)(const void *context);

/// Makes all pixels; given back with etagere_vips_free. Null when it failed or was stopped.
void *etagere_vips_pixels(etagere_vips_image *image, size_t *count, etagere_vips_stop stop, const void *context);

/// Pixels as a file; `suffix` is a suffix of the format's with options: ".jpg[Q=80]". Given back with etagere_vips_free.
void *etagere_vips_encode(etagere_vips_image *image, const char *suffix, size_t *count, etagere_vips_stop stop, const void *context);

/// Makes some rows. Rows of an image that is read in order are asked for in order.
bool etagere_vips_rows(etagere_vips_image *image, int first, int rows, void *to, size_t count);

#ifdef __cplusplus
}
#endif

#endif
