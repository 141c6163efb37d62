#if VIPS && os(Linux)
internal import CEtagereVIPS
internal import CacheCore

/// The system's libvips, which is started on first use and shared by the whole process.
enum VIPSLibrary {
  /// Whether the library has started.
  static let isReady = etagere_vips_start() == 0

  /// Set once, because GLib ends the process if a second writer is set.
  static let discardsMessages: Void = etagere_vips_discard_messages()

  /// The version of the library, such as `8.14.1`.
  static var version: String { String(cString: etagere_vips_version()) }

  /// Returns the loader of a format, or `nil` if the library has none.
  static func loader(of format: ImageFormat) -> Loader? {
    let loader: Loader? =
      switch format {
      case .jpeg: Loader(name: "jpegload_buffer", hasPages: false, reduction: .shrink)
      case .png: Loader(name: "pngload_buffer", hasPages: false)
      case .gif: Loader(name: "gifload_buffer", hasPages: true)
      case .webp: Loader(name: "webpload_buffer", hasPages: true, reduction: .scale)
      case .avif, .heic: Loader(name: "heifload_buffer", hasPages: true)
      case .tiff: Loader(name: "tiffload_buffer", hasPages: true)
      case .svg: Loader(name: "svgload_buffer", hasPages: false, reduction: .scale)
      default: nil
      }
    guard let loader, etagere_vips_has(loader.name) else { return nil }
    return loader
  }

  struct Loader {
    /// The sizes to which a codec can decode.
    enum Reduction {
      /// Only the full size.
      case none
      /// A half, a quarter or an eighth.
      case shrink
      /// Any size.
      case scale
    }

    let name: String
    let hasPages: Bool
    var reduction = Reduction.none

    /// Opens bytes, which must stay in place.
    ///
    /// - Parameters:
    ///   - first: The index of the first frame.
    ///   - factor: The factor by which the image will be shrunk.
    ///   - fast: Whether the codec shrinks as far as sharpening can compensate.
    func open(
      _ bytes: UnsafeRawBufferPointer, from first: Int32 = 0, pages: Int32, strict: Bool, factor: Double = 1, fast: Bool = false
    ) -> VIPSImage? {
      let shrink: Int32
      switch reduction {
      // The codec's shrinking is coarse, so at least a factor of two is left to resampling. With less than 1.25, the image loses
      // 0.3 to 0.8 dB, also with sharpening.
      case .shrink: shrink = [8, 4, 2].first { factor >= Double($0) * (fast ? 1.25 : 2) } ?? 1
      case .none, .scale: shrink = 0
      }
      let scale = reduction == .scale && factor != 1 ? 1 / factor : 0
      return VIPSImage(
        etagere_vips_open(bytes.baseAddress, bytes.count, name, first, hasPages ? pages : 0, strict, shrink, scale))
    }
  }

  /// Returns an error with the library's description of the last failure on one line. The library has one list for all
  /// threads: a description can be that of another image. Therefore it only follows the package's reason and decides
  /// nothing.
  static func failure(_ what: String, _ format: ImageFormat? = nil) -> CacheError {
    var reason = format.map { "\($0): \(what)" } ?? what
    if let text = etagere_vips_take_error() {
      let lines = String(cString: text).split(whereSeparator: \.isNewline).prefix(3)
      etagere_vips_free(text)
      if !lines.isEmpty { reason += " (\(lines.joined(separator: "; ").prefix(300)))" }
    }
    return CacheError(.decodingFailed, reason: reason)
  }
}
#endif
