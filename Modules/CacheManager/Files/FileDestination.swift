internal import CacheCore

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The file that a caller wants a resource in.
struct FileDestination: Sendable {
  var url: URL
  /// Whether the bytes are durable before the file appears.
  var isDurable: Bool
  var calls: FileSystemCalls

  /// The path of the file.
  ///
  /// - Throws: An error if the URL cannot be that of a file.
  func path() throws(CacheError) -> String {
    let path = url.path(percentEncoded: false)
    guard url.isFileURL, !path.isEmpty else {
      throw CacheError(
        .invalidConfiguration, reason: "a resource is loaded to a file: URL, not to \(url.address)")
    }
    guard !path.utf8.contains(0) else {
      throw CacheError(.invalidConfiguration, reason: "a file's path has no zero byte in it", path: path)
    }
    return path
  }
}
