extension ImageEncoder {
  /// The name and version of the platform's codecs. Other versions may make other bytes of the same image.
  package static var codecVersion: String {
    #if VIPS && os(Linux)
    "libvips \(VIPSLibrary.version)"
    #else
    "system"
    #endif
  }
}
