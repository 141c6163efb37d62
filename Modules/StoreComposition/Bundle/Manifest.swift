internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// What a folder of shipped files says of them, version 1.
struct Manifest: Decodable {
  struct Entry: Decodable {
    /// What is asked for.
    var url: String
    /// The file, relative to the folder.
    var file: String
    /// The answer's header fields.
    var fields: [String: String]?
    /// Seconds, from `Date` or from the file's modification.
    var freshFor: Int64?
    /// The tenant, as in a request's options.
    var partition: String?
    /// The key, as in a request's options; it takes the place of the URL.
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
      throw CacheError(.invalidConfiguration, reason: "the manifest is none: \(error)", path: path, underlying: error)
    }
    guard version == Self.version else {
      throw CacheError(
        .unsupported, reason: "the manifest has version \(version), and this store reads version \(Self.version)", path: path)
    }
  }
}

extension Manifest.Entry {
  /// The request, its resource and the answer's head.
  func heads(_ path: String) throws(CacheError) -> (request: HTTPRequest, resource: String, response: HTTPResponse) {
    guard let location = URL(string: url) else {
      throw CacheError(.invalidConfiguration, reason: "the manifest names what is no URL: \(url)", path: path)
    }
    let request = try HTTPRequest(resource: location)
    guard let uri = ResourceID.uri(of: request) else {
      throw CacheError(.invalidConfiguration, reason: "the manifest names what is no absolute URL: \(url)", path: path)
    }
    var response = HTTPResponse(status: .ok)
    for (name, value) in (fields ?? [:]).sorted(by: { $0.key < $1.key }) {
      guard let name = HTTPField.Name(name), HTTPField.isValidValue(value) else {
        throw CacheError(.invalidConfiguration, reason: "the manifest has a field that HTTP does not allow: \(name)", path: path)
      }
      response.headerFields[name] = value
    }
    return (request, ResourceID.make(uri: uri, key: key, partition: partition), response)
  }
}
