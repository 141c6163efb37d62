#include "CEtagereVIPS.h"

#ifdef ETAGERE_VIPS

#include <string.h>

#if !__has_include(<vips/vips.h>)
#error "The trait VIPS needs libvips: apt-get install libvips-dev (or your system's package of that kind)"
#endif
#include <vips/vips.h>

static VipsImage *vips(const etagere_vips_image *image) { return (VipsImage *)image; }

static etagere_vips_image *made(int status, VipsImage *image) {
  if (status == 0) return (etagere_vips_image *)image;
  if (image) g_object_unref(image);
  return NULL;
}

// MARK: Run-time generated code

// Before 8.15, resizing and smart cropping use inner loops that liborc compiles when the operation is created and frees
// with it. liborc 0.4.33 keeps its list of that code without a lock, and eight resizing threads corrupt the heap within
// seconds. Therefore only one thread at a time creates such an operation or releases an image. Pixels are computed in
// parallel.
static GMutex code;
static bool compiles;

static void enter(void) {
  if (compiles) g_mutex_lock(&code);
}

static void leave(void) {
  if (compiles) g_mutex_unlock(&code);
}

// MARK: The library

static void ignore(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer data) {}

// Drawing libraries write about each glyph: one drawing made hundreds of megabytes. The messages of other libraries, and those
// that end the process, are written. A handler for each domain would miss structured messages.
static GLogWriterOutput write_log(GLogLevelFlags level, const GLogField *fields, gsize count, gpointer data) {
  static const char *const ignored[] = {
      "VIPS", "librsvg", "Pango", "cairo", "GdkPixbuf", "GLib", "GLib-GObject", "GLib-GIO",
  };
  if ((level & (G_LOG_LEVEL_ERROR | G_LOG_FLAG_FATAL)) == 0)
    for (gsize i = 0; i < count; i++) {
      if (strcmp(fields[i].key, "GLIB_DOMAIN") != 0) continue;
      // Without a length, the value ends with NUL.
      size_t length = fields[i].length < 0 ? strlen(fields[i].value) : (size_t)fields[i].length;
      for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
        if (strlen(ignored[k]) == length && memcmp(fields[i].value, ignored[k], length) == 0) return G_LOG_WRITER_HANDLED;
    }
  return g_log_writer_default(level, fields, count, data);
}

void etagere_vips_discard_messages(void) { g_log_set_writer_func(write_log, NULL, NULL); }

int etagere_vips_start(void) {
  if (vips_init("etagere") != 0) return -1;
  // No operation cache: it would grow with the work of a server, and results are cached outside.
  vips_cache_set_max(0);
  // One thread per image, because as many images are decoded in parallel as there are cores. With several threads, 8.14
  // sometimes accepted a truncated image as complete. Presumably, the error in the last part arrived after the check of
  // the result.
  vips_concurrency_set(1);
  compiles = vips_version(0) == 8 && vips_version(1) < 15;
  // Block all loaders and all operations that the library declares unfit for untrusted files, then allow the image
  // loaders. SVG is the only unfit loader among them: see Set.fitForUntrustedFiles. Drawings are checked before.
  vips_block_untrusted_set(TRUE);
  vips_operation_block_set("VipsForeignLoad", TRUE);
  static const char *const loaders[] = {
      "VipsForeignLoadJpeg", "VipsForeignLoadPng",  "VipsForeignLoadNsgif", "VipsForeignLoadWebp",
      "VipsForeignLoadHeif", "VipsForeignLoadTiff", "VipsForeignLoadSvg",
  };
  for (size_t i = 0; i < sizeof loaders / sizeof *loaders; i++) vips_operation_block_set(loaders[i], FALSE);
  // Damage is either an error or accepted by the caller, so it needs no line in a server's log. The writer of all messages
  // belongs to the program: a second one ends the process.
  g_log_set_handler("VIPS", G_LOG_LEVEL_WARNING | G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG, ignore, NULL);
  return 0;
}

const char *etagere_vips_version(void) { return vips_version_string(); }

char *etagere_vips_take_error(void) {
  char *text = vips_error_buffer_copy();
  if (text && *text) return text;
  g_free(text);
  return NULL;
}

void etagere_vips_free(void *memory) { g_free(memory); }

void etagere_vips_release(etagere_vips_image *image) {
  if (!image) return;
  enter();
  g_object_unref(image);
  leave();
}

bool etagere_vips_has(const char *operation) {
  GType type = vips_type_find("VipsOperation", operation);
  if (type == 0) return false;
  gpointer class = g_type_class_ref(type);
  bool blocked = (VIPS_OPERATION_CLASS(class)->flags & VIPS_OPERATION_BLOCKED) != 0;
  g_type_class_unref(class);
  return !blocked;
}

// MARK: Opening

etagere_vips_image *etagere_vips_open(
    const void *bytes, size_t count, const char *loader, int first, int pages, bool strict, int shrink, double scale) {
  // Calls that succeed can leave messages, for example about a profile that is not used. They would be in the next error.
  vips_error_clear();
  VipsBlob *blob = vips_blob_new(NULL, bytes, count);
  VipsFailOn fail_on = strict ? VIPS_FAIL_ON_ERROR : VIPS_FAIL_ON_NONE;
  VipsAccess in_order = VIPS_ACCESS_SEQUENTIAL;
  VipsImage *image = NULL;
  int status;
  if (shrink > 0)
    status = vips_call(loader, blob, &image, "access", in_order, "fail_on", fail_on, "shrink", shrink, NULL);
  else if (scale > 0 && pages != 0)
    status = vips_call(
        loader, blob, &image, "access", in_order, "fail_on", fail_on, "page", first, "n", pages, "scale", scale, NULL);
  else if (scale > 0)
    status = vips_call(loader, blob, &image, "access", in_order, "fail_on", fail_on, "scale", scale, NULL);
  else if (pages != 0)
    status = vips_call(loader, blob, &image, "access", in_order, "fail_on", fail_on, "page", first, "n", pages, NULL);
  else
    status = vips_call(loader, blob, &image, "access", in_order, "fail_on", fail_on, NULL);
  vips_area_unref(VIPS_AREA(blob));
  return made(status, image);
}

etagere_vips_image *etagere_vips_wrap(const void *pixels, size_t count, int width, int height, int bands) {
  VipsImage *image = vips_image_new_from_memory(pixels, count, width, height, bands, VIPS_FORMAT_UCHAR);
  if (!image) return NULL;
  image->Type = bands < 3 ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB;
  return (etagere_vips_image *)image;
}

// MARK: Headers

int etagere_vips_width(const etagere_vips_image *image) { return vips_image_get_width(vips(image)); }
int etagere_vips_height(const etagere_vips_image *image) { return vips_image_get_height(vips(image)); }
int etagere_vips_bands(const etagere_vips_image *image) { return vips_image_get_bands(vips(image)); }
bool etagere_vips_has_alpha(const etagere_vips_image *image) { return vips_image_hasalpha(vips(image)); }
int etagere_vips_depth(const etagere_vips_image *image) {
  return (int)vips_format_sizeof(vips_image_get_format(vips(image))) * 8;
}
bool etagere_vips_is_cmyk(const etagere_vips_image *image) {
  return vips_image_get_interpretation(vips(image)) == VIPS_INTERPRETATION_CMYK;
}

int etagere_vips_number(const etagere_vips_image *image, const char *name, int missing) {
  int value;
  if (vips_image_get_typeof(vips(image), name) != G_TYPE_INT || vips_image_get_int(vips(image), name, &value) != 0) return missing;
  return value;
}

const int *etagere_vips_numbers(const etagere_vips_image *image, const char *name, int *count) {
  int *values;
  if (vips_image_get_typeof(vips(image), name) == 0 || vips_image_get_array_int(vips(image), name, &values, count) != 0) return NULL;
  return values;
}

const void *etagere_vips_profile(const etagere_vips_image *image, size_t *count) {
  const void *bytes;
  if (vips_image_get_typeof(vips(image), VIPS_META_ICC_NAME) == 0) return NULL;
  if (vips_image_get_blob(vips(image), VIPS_META_ICC_NAME, &bytes, count) != 0) return NULL;
  return bytes;
}

// The library's check accepts a gray profile for colors, so that the second color channel becomes alpha.
static bool is_for(const char *profile, size_t count, etagere_vips_image *image) {
  if (count < 20) return false;
  const char *colors = profile + 16;
  if (memcmp(colors, "GRAY", 4) == 0) return etagere_vips_bands(image) < 3;
  if (memcmp(colors, "RGB ", 4) == 0) return etagere_vips_bands(image) >= 3 && !etagere_vips_is_cmyk(image);
  if (memcmp(colors, "CMYK", 4) == 0) return etagere_vips_is_cmyk(image);
  return true;
}

bool etagere_vips_profile_fits(etagere_vips_image *image) {
  size_t count;
  const void *bytes = etagere_vips_profile(image, &count);
  return bytes && is_for(bytes, count, image) && vips_icc_is_compatible_profile(vips(image), bytes, count);
}

// MARK: Changes

etagere_vips_image *etagere_vips_upright(etagere_vips_image *image, int orientation) {
  VipsImage *marked = NULL, *out = NULL;
  if (vips_copy(vips(image), &marked, NULL) != 0) return NULL;
  vips_image_set_int(marked, VIPS_META_ORIENTATION, orientation);
  int status = vips_autorot(marked, &out, NULL);
  g_object_unref(marked);
  return made(status, out);
}

etagere_vips_image *etagere_vips_standard(etagere_vips_image *image) {
  VipsImage *in = vips(image), *out = NULL;
  int status;
  if (etagere_vips_profile_fits(image)) {
    // With 16 bits, alpha is not converted to 8 bits with the colors but truncated.
    bool is_deep = vips_image_get_format(in) == VIPS_FORMAT_USHORT;
    status = vips_icc_transform(in, &out, "srgb", "embedded", TRUE, "depth", is_deep ? 16 : 8, NULL);
    if (status == 0 && is_deep) {
      VipsImage *deep = out;
      out = NULL;
      status = vips_colourspace(deep, &out, VIPS_INTERPRETATION_sRGB, "source_space", VIPS_INTERPRETATION_RGB16, NULL);
      g_object_unref(deep);
    }
  } else if (etagere_vips_is_cmyk(image)) {
    status = vips_icc_transform(in, &out, "srgb", "input_profile", "cmyk", "depth", 8, NULL);
  } else {
    bool is_gray = vips_image_get_bands(in) < 3;
    VipsInterpretation space = is_gray ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB;
    VipsInterpretation from = vips_image_get_interpretation(in);
    // An image with the interpretation "multiband" contains colors too.
    if (from == VIPS_INTERPRETATION_MULTIBAND || from == VIPS_INTERPRETATION_ERROR) from = vips_image_guess_interpretation(in);
    status = vips_colourspace(in, &out, space, "source_space", from, NULL);
  }
  if (status == 0 && vips_image_get_format(out) != VIPS_FORMAT_UCHAR) {
    VipsImage *narrow = NULL;
    status = vips_cast(out, &narrow, VIPS_FORMAT_UCHAR, NULL);
    g_object_unref(out);
    out = narrow;
  }
  return made(status, out);
}

// Premultiplies and unpremultiplies, so that the colors of transparent pixels do not affect their neighbors.
static int resize_straight(VipsImage *in, VipsImage **out, double x, double y) {
  VipsImage *t[3] = {NULL, NULL, NULL};
  double full = vips_image_get_format(in) == VIPS_FORMAT_USHORT ? UINT16_MAX : UINT8_MAX;
  int status = vips_premultiply(in, &t[0], "max_alpha", full, NULL);
  if (status == 0) status = vips_resize(t[0], &t[1], x, "vscale", y, NULL);
  if (status == 0) status = vips_unpremultiply(t[1], &t[2], "max_alpha", full, NULL);
  if (status == 0) status = vips_cast(t[2], out, vips_image_get_format(in), NULL);
  for (int i = 0; i < 3; i++)
    if (t[i]) g_object_unref(t[i]);
  return status;
}

static etagere_vips_image *resized(etagere_vips_image *image, int width, int height) {
  VipsImage *in = NULL, *out = NULL;
  VipsBandFormat format = vips_image_get_format(vips(image));
  if (format == VIPS_FORMAT_UCHAR || format == VIPS_FORMAT_USHORT) {
    if (vips_copy(vips(image), &in, NULL) != 0) return NULL;
  } else {
    in = vips(etagere_vips_standard(image));
    if (!in) return NULL;
  }
  // Shrinking requests rows from top to bottom. With this flag, libvips caches rows between two steps. Without it, 8.14
  // computes the rows of an image in memory several times.
  bool shrinks = width <= vips_image_get_width(in) && height <= vips_image_get_height(in);
  if (shrinks) vips_image_set_int(in, VIPS_META_SEQUENTIAL, 1);
  double x = 1.0 / ((double)vips_image_get_width(in) / width), y = 1.0 / ((double)vips_image_get_height(in) / height);
  int status = vips_image_hasalpha(in) ? resize_straight(in, &out, x, y) : vips_resize(in, &out, x, "vscale", y, NULL);
  g_object_unref(in);
  return made(status, out);
}

etagere_vips_image *etagere_vips_resize(etagere_vips_image *image, int width, int height) {
  enter();
  etagere_vips_image *out = resized(image, width, height);
  leave();
  return out;
}

static bool attention(etagere_vips_image *image, int width, int height, int *x, int *y) {
  VipsImage *out = NULL;
  if (vips_smartcrop(vips(image), &out, width, height, "interesting", VIPS_INTERESTING_ATTENTION, NULL) != 0) return false;
  // The header of a crop contains the offset of its origin.
  *x = -vips_image_get_xoffset(out);
  *y = -vips_image_get_yoffset(out);
  g_object_unref(out);
  return true;
}

bool etagere_vips_attention(etagere_vips_image *image, int width, int height, int *x, int *y) {
  enter();
  bool found = attention(image, width, height, x, y);
  leave();
  return found;
}

etagere_vips_image *etagere_vips_first_bands(etagere_vips_image *image, int count) {
  VipsImage *out = NULL;
  int status = vips_extract_band(vips(image), &out, 0, "n", count, NULL);
  return made(status, out);
}

// MARK: Pixels

typedef struct {
  etagere_vips_stop stop;
  const void *context;
} Watch;

static void evaluating(VipsImage *image, VipsProgress *progress, Watch *watch) {
  if (watch->stop(watch->context)) vips_image_set_kill(image, TRUE);
}

void *etagere_vips_pixels(etagere_vips_image *image, size_t *count, etagere_vips_stop stop, const void *context) {
  Watch watch = {stop, context};
  VipsImage *in = vips(image);
  gulong handler = g_signal_connect(in, "eval", G_CALLBACK(evaluating), &watch);
  vips_image_set_progress(in, TRUE);
  void *pixels = vips_image_write_to_memory(in, count);
  g_signal_handler_disconnect(in, handler);
  return pixels;
}

// libvips convolves integers with rounded weights, and floating-point numbers in eight times the time of these loops.
bool etagere_vips_sharpen(void *pixels, int width, int height, int bands, double x, double y) {
  size_t line = (size_t)width * (size_t)bands, side = (size_t)bands;
  float across = (float)x, down = (float)y;
  uint8_t *above = g_try_malloc(line), *here = g_try_malloc(line);
  // A pixel more on each side.
  float *sharp = g_try_malloc_n(line + 2 * side, sizeof *sharp);
  bool done = above && here && sharp;
  for (int row = 0; done && row < height; row++) {
    uint8_t *out = (uint8_t *)pixels + line * (size_t)row;
    const uint8_t *below = row + 1 < height ? out + line : out;
    memcpy(here, out, line);
    if (row == 0) memcpy(above, out, line);
    for (size_t i = 0; i < line; i++) sharp[side + i] = (float)here[i] + down * (float)(2 * here[i] - above[i] - below[i]);
    memcpy(sharp, sharp + side, side * sizeof *sharp);
    memcpy(sharp + side + line, sharp + line, side * sizeof *sharp);
    for (size_t i = 0; i < line; i++) {
      float value = sharp[side + i];
      value += across * (2 * value - sharp[i] - sharp[i + 2 * side]) + 0.5F;
      out[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
    uint8_t *swap = above;
    above = here;
    here = swap;
  }
  g_free(above);
  g_free(here);
  g_free(sharp);
  return done;
}

void *etagere_vips_encode(etagere_vips_image *image, const char *suffix, size_t *count, etagere_vips_stop stop, const void *context) {
  Watch watch = {stop, context};
  VipsImage *in = vips(image);
  gulong handler = g_signal_connect(in, "eval", G_CALLBACK(evaluating), &watch);
  vips_image_set_progress(in, TRUE);
  void *bytes = NULL;
  int status = vips_image_write_to_buffer(in, suffix, &bytes, count, NULL);
  g_signal_handler_disconnect(in, handler);
  if (status == 0) return bytes;
  g_free(bytes);
  return NULL;
}

bool etagere_vips_rows(etagere_vips_image *image, int first, int rows, void *to, size_t count) {
  VipsImage *in = vips(image);
  VipsRect wanted = {0, first, vips_image_get_width(in), rows};
  size_t line = VIPS_IMAGE_SIZEOF_LINE(in);
  if (rows < 0 || line * (size_t)rows > count) return false;
  VipsRegion *region = vips_region_new(in);
  bool done = region && vips_region_prepare(region, &wanted) == 0;
  for (int row = 0; done && row < rows; row++)
    memcpy((char *)to + line * (size_t)row, VIPS_REGION_ADDR(region, 0, first + row), line);
  if (region) g_object_unref(region);
  return done;
}

#else

// Without the trait VIPS, these functions are never called.
typedef int etagere_vips_is_off;

#endif
