#if VIPS && os(Linux)
internal import CVIPS
internal import CacheCore

/// The system's libvips, started when it is first needed. It is one for the process, whoever uses it.
enum VIPSLibrary {
  /// Whether it has started.
  static let isReady = etagere_vips_start() == 0

  /// The library's version: `8.14.1`.
  static var version: String { String(cString: etagere_vips_version()) }

  /// The loader of a format's bytes; nil: there is none here.
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
    /// How a codec can decode to another size.
    enum Reduction {
      /// It can't.
      case none
      /// By 2, 4 or 8.
      case shrink
      /// To any.
      case scale
    }

    let name: String
    let hasPages: Bool
    var reduction = Reduction.none

    /// Opens bytes, which have to stay where they are. `factor`: how many times smaller they will be made than they are stored.
    func open(_ bytes: UnsafeRawBufferPointer, pages: Int32, strict: Bool, factor: Double = 1) -> VIPSImage? {
      let shrink: Int32
      switch reduction {
      // The codec's own way is coarse: at least a factor of two is left to the resampling that comes after it.
      case .shrink: shrink = factor >= 16 ? 8 : factor >= 8 ? 4 : factor >= 4 ? 2 : 1
      case .none, .scale: shrink = 0
      }
      let scale = reduction == .scale && factor != 1 ? 1 / factor : 0
      return VIPSImage(etagere_vips_open(bytes.baseAddress, bytes.count, name, hasPages ? pages : 0, strict, shrink, scale))
    }
  }

  /// What the library says about the last failure, in one line. It has one list for all threads: where several pictures fail in
  /// one moment, one's reason can name another's, so it stands behind our own and decides nothing.
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
