#include "CPlainVIPS.h"

#ifdef ETAGERE_VIPS
#include <vips/vips.h>

size_t etagere_plain_vips_thumbnail(const void *bytes, size_t count, int side, int threads, bool in_full) {
  VipsImage *full = NULL, *small = NULL;
  vips_concurrency_set(threads);
  int status;
  if (in_full) {
    status = vips_jpegload_buffer((void *)bytes, count, &full, "access", VIPS_ACCESS_SEQUENTIAL, NULL);
    if (status == 0) status = vips_thumbnail_image(full, &small, side, "height", side, NULL);
  } else {
    status = vips_thumbnail_buffer((void *)bytes, count, &small, side, "height", side, NULL);
  }
  size_t length = 0;
  if (status == 0) g_free(vips_image_write_to_memory(small, &length));
  if (small) g_object_unref(small);
  if (full) g_object_unref(full);
  vips_concurrency_set(1);
  return length;
}
#else
size_t etagere_plain_vips_thumbnail(const void *bytes, size_t count, int side, int threads, bool in_full) { return 0; }
#endif
