internal import CacheCore
internal import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// An open file, closed with its last reference.
final class BundledFile: Sendable {
  private let descriptor: Int32
  let path: String
  let size: Int64
  let modified: Timestamp

  /// - Parameters:
  ///   - name: The path relative to the folder. Links on the way are not followed, because they could lead out of the folder.
  ///   - place: The path of the file that states the name, or of the folder.
  init(_ name: String, in folder: String, said place: String) throws(CacheError) {
    let parts = try Self.parts(name, said: place)
    path = folder + (folder.hasSuffix("/") ? "" : "/") + name
    descriptor = try Self.descend(parts, from: folder, path)
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      let number = errno
      close(descriptor)
      throw Self.failure("open a file (it must be a regular file)", path, number)
    }
    size = Int64(status.st_size)
    modified = .modified(status)
  }

  deinit { close(descriptor) }

  /// Returns the names of the folders on the way and of the file.
  ///
  /// - Throws: An error if `name` is not the name of a file inside the folder.
  static func parts(_ name: String, said place: String) throws(CacheError) -> [String] {
    // As a character, a slash can be one with an accent, and the system sees bytes.
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    guard !name.utf8.contains(0), !parts.contains(where: { ["", ".", ".."].contains($0) }) else {
      throw CacheError(.invalidConfiguration, reason: "not the name of a file in the folder: \(name)", path: place)
    }
    return parts
  }

  private static func descend(_ parts: [String], from folder: String, _ path: String) throws(CacheError) -> Int32 {
    var place = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY)
    for (index, part) in parts.enumerated() where place >= 0 {
      let isLast = index == parts.count - 1
      let next = openat(place, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (isLast ? 0 : O_DIRECTORY))
      let number = errno
      close(place)
      errno = number
      place = next
    }
    guard place >= 0 else { throw failure("open a file", path, errno) }
    return place
  }

  /// - Throws: An error if the read fails or the file has become shorter.
  func read(_ range: Range<Int64>) throws(CacheError) -> Data {
    var bytes = [UInt8](repeating: 0, count: range.count)
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeMutableBytes { [descriptor] buffer in
        pread(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, off_t(range.lowerBound) + off_t(done))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw count < 0 ? Self.failure("read a file", path, errno) : shorter }
      done += count
    }
    return Data(bytes)
  }

  private var shorter: CacheError { CacheError(.damagedEntry, reason: "the file has become shorter", path: path) }

  private static func failure(_ action: String, _ path: String, _ number: Int32) -> CacheError {
    CacheError(.fileSystem, reason: "cannot \(action): \(String(cString: strerror(number)))", path: path, errno: number)
  }
}

/// The manifest of a folder of shipped files, version 1.
struct Manifest: Decodable {
  struct Entry: Decodable {
    /// The URL of the request.
    var url: String
    /// The path of the file, relative to the folder.
    var file: String
    /// The response's header fields.
    var fields: [String: String]?
    /// The freshness lifetime in seconds, counted from `Date` or the file's modification time.
    var freshFor: Int64?
    /// The tenant, as in a request's options.
    var partition: String?
    /// The key, as in a request's options, which replaces the URL.
    var key: String?
  }

  static let version = 1

  var version: Int
  var entries: [Entry]

  init(_ data: Data, _ path: String) throws(CacheError) {
    do {
      self = try JSONDecoder().decode(Manifest.self, from: data)
    } catch {
      throw CacheError(.invalidConfiguration, reason: "the manifest is invalid: \(error)", path: path, underlying: error)
    }
    guard version == Self.version else {
      throw CacheError(
        .unsupported, reason: "the manifest has version \(version), but this store supports only version \(Self.version)",
        path: path)
    }
  }
}

extension Manifest.Entry {
  /// Returns the request, its resource and the response head.
  func heads(_ path: String) throws(CacheError) -> (request: HTTPRequest, resource: String, response: HTTPResponse) {
    guard let location = URL(encoding: url) else {
      throw CacheError(.invalidConfiguration, reason: "the manifest has an invalid URL: \(url)", path: path)
    }
    if let freshFor, freshFor < 0 {
      throw CacheError(.invalidConfiguration, reason: "the manifest has a negative freshFor: \(freshFor)", path: path)
    }
    let request = try HTTPRequest(resource: location)
    guard let uri = ResourceID.uri(of: request) else {
      throw CacheError(.invalidConfiguration, reason: "the manifest has a URL that is not absolute: \(url)", path: path)
    }
    var response = HTTPResponse(status: .ok)
    for (name, value) in (fields ?? [:]).sorted(by: { $0.key < $1.key }) {
      guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else {
        throw CacheError(.invalidConfiguration, reason: "the manifest has an invalid header field: \(name)", path: path)
      }
      response.headerFields[name] = value
    }
    return (request, ResourceID.make(uri: uri, key: key, partition: partition), response)
  }
}
