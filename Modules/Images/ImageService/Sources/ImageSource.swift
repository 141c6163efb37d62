#if Service
public import CacheCore
public import HTTPTypes

/// A place from which an ``ImageService`` takes images: the URLs below a URL, or a folder.
///
/// ```swift
/// let sources: [ImageSource] = [
///   try .origin("https://photos.example.com/public/"), try .folder("/srv/images", named: "site"),
/// ]
/// ```
public struct ImageSource: Sendable {
  enum Place: Sendable {
    case origin(OriginPattern)
    case folder(name: String, path: String)
  }

  let place: Place
  /// The `Cache-Control` of images whose source states neither `Cache-Control` nor `Expires`, such as files; or `nil` to add
  /// none. Without a lifetime, each request is checked against the source.
  public var cacheControl: String?
  /// The header fields that are added to each request to the origin, such as `Authorization`. They are not sent to other origins.
  public var headerFields: HTTPFields = [:]

  /// Creates a source from an origin, and optionally a path. URLs whose path begins with that path are allowed. If it does not
  /// end with a slash, only the URL itself and URLs below it are allowed.
  ///
  /// The host `*.example.com` stands for every host below `example.com`.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if the text is not such a URL.
  public static func origin(_ url: String) throws(CacheError) -> ImageSource {
    guard let pattern = OriginPattern(url) else {
      throw CacheError(
        .invalidConfiguration,
        reason: "'\(url)' is not the URL of an origin: http or https, a host, and optionally a port and a path")
    }
    return ImageSource(place: .origin(pattern))
  }

  /// Creates a source from a folder. `cats/1.jpg` in the folder named `site` is the source `site/cats/1.jpg`.
  ///
  /// Hidden files, and links that lead out of the folder, are not found.
  ///
  /// - Throws: `CacheError.Code.invalidConfiguration` if the name has other characters than letters, digits and hyphens, or if
  ///   the folder does not exist.
  public static func folder(_ path: String, named name: String) throws(CacheError) -> ImageSource {
    guard SourceReference.isFolderName(name) else {
      throw CacheError(
        .invalidConfiguration, reason: "the name '\(name)' of a folder has other characters than letters, digits and hyphens")
    }
    guard let root = FolderDownloader.realPath(path) else {
      throw CacheError(.invalidConfiguration, reason: "cannot open the folder '\(path)': no such folder", path: path)
    }
    return ImageSource(place: .folder(name: name, path: root))
  }
}
#endif
