#ifndef CVIPS_H
#define CVIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A C interface to libvips without variadic functions and without the libvips headers. Functions that create an image
// return a new reference, which the caller releases with etagere_vips_release. On failure they return null, and
// etagere_vips_take_error returns the reason. Without the trait VIPS, these functions have no implementation and are
// not called.

typedef struct etagere_vips_image etagere_vips_image;

/// Starts libvips once per process, with these settings: no operation cache, one thread per evaluation, only loaders
/// that are safe for untrusted files, and no warnings of libvips on standard error. Returns 0 on success.
int etagere_vips_start(void);

/// Sets GLib's log writer to one that discards the messages of libvips and of drawing libraries. GLib ends the process if
/// a second writer is set, so only a program calls this function, once.
void etagere_vips_discard_messages(void);

/// Returns the version of the library, such as "8.14.1".
const char *etagere_vips_version(void);

/// Returns and clears the reasons of failures, or null. The caller frees the string with etagere_vips_free. The library
/// has one list for all threads.
char *etagere_vips_take_error(void);

void etagere_vips_free(void *memory);
void etagere_vips_release(etagere_vips_image *image);

/// Returns whether an operation exists and is not blocked.
bool etagere_vips_has(const char *operation);

/// Opens a file in memory. The bytes must stay in place as long as the image and all images derived from it.
/// `first`: the first frame. `pages`: the number of frames, -1 for all, 0 if the loader has no frames. `strict`: whether
/// damage is an error.
/// `shrink`: the factor by which a JPEG is shrunk: 1, 2, 4 or 8. `scale`: the scale of a WebP or an SVG. 0 if the
/// loader does not support it.
etagere_vips_image *etagere_vips_open(
    const void *bytes, size_t count, const char *loader, int first, int pages, bool strict, int shrink, double scale);

/// Creates an image from pixels in memory, which must stay in place.
etagere_vips_image *etagere_vips_wrap(const void *pixels, size_t count, int width, int height, int bands);

int etagere_vips_width(const etagere_vips_image *image);
int etagere_vips_height(const etagere_vips_image *image);
int etagere_vips_bands(const etagere_vips_image *image);
bool etagere_vips_has_alpha(const etagere_vips_image *image);
/// Returns the bits per channel.
int etagere_vips_depth(const etagere_vips_image *image);
bool etagere_vips_is_cmyk(const etagere_vips_image *image);
/// Returns a header field, or `missing`.
int etagere_vips_number(const etagere_vips_image *image, const char *name, int missing);
/// Returns a list in the header, owned by the image, or null.
const int *etagere_vips_numbers(const etagere_vips_image *image, const char *name, int *count);
/// Returns the bytes of the embedded profile, owned by the image, or null.
const void *etagere_vips_profile(const etagere_vips_image *image, size_t *count);
/// Returns whether the embedded profile matches the image's channels.
bool etagere_vips_profile_fits(etagere_vips_image *image);

/// Applies an EXIF orientation from 1 to 8. The pixels must be in memory, because they are not read in order.
etagere_vips_image *etagere_vips_upright(etagere_vips_image *image, int orientation);
/// Converts to 8-bit sRGB or gray. A profile that does not match is ignored.
etagere_vips_image *etagere_vips_standard(etagere_vips_image *image);
/// Resizes to exactly the given size. Reads in order.
etagere_vips_image *etagere_vips_resize(etagere_vips_image *image, int width, int height);
/// Finds the upper left corner of the most salient part of the given size.
bool etagere_vips_attention(etagere_vips_image *image, int width, int height, int *x, int *y);
/// Returns the image with only its first bands.
etagere_vips_image *etagere_vips_first_bands(etagere_vips_image *image, int count);

/// A callback that is called repeatedly on the evaluating thread. It returns true to stop the evaluation.
typedef bool (*etagere_vips_stop)(const void *context);

/// Computes all pixels. The caller frees them with etagere_vips_free. Returns null on failure or after a stop.
void *etagere_vips_pixels(etagere_vips_image *image, size_t *count, etagere_vips_stop stop, const void *context);

/// Subtracts the neighbors of each pixel with the weights `x` and `y`, and adds as much of the pixel. Returns false without memory.
bool etagere_vips_sharpen(void *pixels, int width, int height, int bands, double x, double y);

/// Encodes an image as a file. `suffix` is the suffix of the format with options, such as ".jpg[Q=80]". The caller
/// frees the file with etagere_vips_free.
void *etagere_vips_encode(etagere_vips_image *image, const char *suffix, size_t *count, etagere_vips_stop stop, const void *context);

/// Computes rows. For an image that is read in order, the rows must be requested in order.
bool etagere_vips_rows(etagere_vips_image *image, int first, int rows, void *to, size_t count);

#ifdef __cplusplus
}
#endif

#endif
