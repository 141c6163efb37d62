internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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

  init(_ file: BundledFile) throws(CacheError) {
    let path = file.path
    let data = try file.read(0..<file.size)
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
