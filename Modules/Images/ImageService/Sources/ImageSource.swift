#if Service
public import CacheCore
internal import CacheTransport
public import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

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

/// A downloader that loads from allowed origins only. Each redirect is a request of its own, so its target is checked too.
struct SourceDownloader: Downloader {
  let id = ComponentID.unique(SourceDownloader.self)
  private let engine: (any Downloader)?
  private let origins: [(pattern: OriginPattern, source: ImageSource)]

  init(_ engine: (any Downloader)?, _ sources: [ImageSource]) {
    self.engine = engine
    origins = sources.compactMap { source in
      if case .origin(let pattern) = source.place { (pattern, source) } else { nil }
    }
  }

  var preferredExecutor: (any TaskExecutor)? { engine?.preferredExecutor }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    guard let origin = origins.first(where: { $0.pattern.matches(url) }) else {
      throw CacheError(.refused, reason: "no source of the service contains this URL")
    }
    guard let engine else { throw CacheError(.noDownloader, reason: "the service has no downloader") }
    var request = request
    for field in origin.source.headerFields { request.head.headerFields.append(field) }
    return try await engine.download(request).adding(origin.source.cacheControl)
  }
}

/// A downloader for the files of all named folders. It is used for a source that names a folder, and never for the target of a
/// redirect: an origin must not choose files.
struct FolderSources: Downloader {
  let id = ComponentID.unique(FolderSources.self)
  private let folders: [String: (downloader: FolderDownloader, source: ImageSource)]

  init(_ sources: [ImageSource]) throws(CacheError) {
    var folders: [String: (FolderDownloader, ImageSource)] = [:]
    for source in sources {
      guard case .folder(let name, let path) = source.place else { continue }
      guard folders.updateValue((FolderDownloader(path), source), forKey: name.lowercased()) == nil else {
        throw CacheError(.invalidConfiguration, reason: "two folders have the name '\(name)'")
      }
    }
    self.folders = folders
  }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let name = request.head.absoluteURL.flatMap(SourceReference.folder), let folder = folders[name] else {
      throw CacheError(.refused, reason: "the service has no folder of this name")
    }
    return try await folder.downloader.download(request).adding(folder.source.cacheControl)
  }
}

extension DownloadResponse {
  /// Returns the response with this `Cache-Control`, if it states no lifetime of its own.
  fileprivate func adding(_ cacheControl: String?) -> DownloadResponse {
    guard let cacheControl, [200, 203, 206, 304].contains(head.status.code), head.headerFields[.cacheControl] == nil,
      head.headerFields[.expires] == nil
    else { return self }
    var response = self
    response.head.headerFields[.cacheControl] = cacheControl
    return response
  }
}

/// A downloader for the files of a folder.
struct FolderDownloader: Downloader {
  private let root: String
  /// The machines of a fleet have copies of a file, whose results they share.
  private let files = FileDownloader(forCopies: true)

  /// - Parameter root: The path without links.
  init(_ root: String) { self.root = root }

  var id: ComponentID { ComponentID(Self.self, parameters: root) }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let url = request.head.absoluteURL else { throw CacheError(.invalidURL, reason: "the source is not a URL") }
    let path = url.path(percentEncoded: false)
    let folder = root.hasSuffix("/") ? root : "\(root)/"
    let resolved = try await BlockingThreadPool.files.run { [root] in Self.realPath(root + path) }
    // The path itself and the target of its links must be visible. Otherwise a link would publish a hidden file.
    guard !SourceReference.isHidden(path), let file = resolved, file.hasPrefix(folder),
      !SourceReference.isHidden(String(file.dropFirst(folder.count)))
    else { return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data())) }
    var opened = request
    opened.head = HTTPRequest(url: URL(filePath: file, directoryHint: .notDirectory))
    opened.head.method = request.head.method
    opened.head.headerFields[.ifNoneMatch] = request.head.headerFields[.ifNoneMatch]
    var response: DownloadResponse
    do throws(CacheError) {
      response = try await files.download(opened)
    } catch {
      guard let number = error.errno, [ENOENT, EISDIR, ENOTDIR, EACCES, ENXIO, ELOOP].contains(number) else { throw error }
      return DownloadResponse(head: HTTPResponse(status: .notFound), body: ResourceBody(Data()))
    }
    // The source states for how long its images are fresh.
    response.head.headerFields[.cacheControl] = nil
    return response
  }

  /// Returns the path without links, or `nil` if there is no such file or folder.
  static func realPath(_ path: String) -> String? {
    guard !path.utf8.contains(0), let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
#endif
