extension ImageDecoder {
  /// Discards what libvips and drawing libraries write to standard error, in the whole process.
  ///
  /// Call it at the start of a program that owns its process and its standard error. It sets the log writer of GLib
  /// (`g_log_set_writer_func`). GLib ends a process that sets another one, before or after. Without libvips, this function
  /// has no effect.
  public static func discardLibraryMessages() {
    #if VIPS && os(Linux)
    VIPSLibrary.discardsMessages
    #endif
  }
}
