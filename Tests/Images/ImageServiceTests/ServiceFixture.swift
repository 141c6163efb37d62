#if Service
import CacheTesting
import Foundation
import HTTPTypes
import ImageService
import MemoryStore
import Testing

/// A service over a scripted origin, with memory and disk in memory.
struct ServiceFixture {
  static let image = "https://photos.example.com/cat.png"

  let network = ScriptedDownloader()
  let clock = ManualClock()
  let key = SigningKey.fixed(1)
  let store = VolatileStore()
  let service: ImageService

  init(_ change: (inout ImageService.Configuration) throws -> Void = { _ in }) throws {
    var configuration = ImageService.Configuration()
    configuration.keys = [key]
    configuration.sources = [try .origin("https://photos.example.com")]
    configuration.addresses = nil
    configuration.cache.downloader = network
    configuration.cache.memory = MemoryCache(limits: .init(cost: 16 << 20), clock: clock)
    configuration.cache.store = store
    configuration.cache.clock = clock
    try change(&configuration)
    service = try ImageService(configuration)
  }

  /// Lets the origin respond to every request for a URL with an image, and with 304 to its entity tag.
  func serve(
    _ data: Data, at url: String = image, etag: String = "\"1\"", cacheControl: String = "max-age=60", _ fields: HTTPFields = [:]
  ) throws {
    network.serve(try #require(URL(string: url))) { request in
      var fields = fields
      (fields[.eTag], fields[.cacheControl]) = (etag, cacheControl)
      let isKnown = request.headerFields[.ifNoneMatch] == etag
      return isKnown ? .response(.notModified, fields: fields) : .response(.ok, fields: fields, body: data)
    }
  }

  func requests(for url: String = image) throws -> [HTTPRequest] { network.requests(for: try #require(URL(string: url))) }

  func get(
    _ operations: String, of source: String = image, _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get,
    expiresAt expiry: Timestamp? = nil
  ) async throws -> Served {
    let path = key.path(for: source, operations: operations, expiresAt: expiry)
    return try await get(path: path, fields, method: method)
  }

  func get(
    path: String, _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get, client: String? = nil
  ) async throws -> Served {
    let request = HTTPRequest(method: method, scheme: "https", authority: "img.example.com", path: path, headerFields: fields)
    let response = await service.respond(to: request, client: client)
    return Served(response: response, data: try await response.body.collect())
  }
}

/// A response whose body has been read.
struct Served {
  let response: ImageResponse
  let data: Data

  /// The type of an image for a client that accepts WebP, which ImageIO does not write.
  static var typeOfWebP: String { ImageEncoder.isWritten(.webp) ? "image/webp" : "image/jpeg" }

  var status: Int { response.head.status.code }
  var fields: HTTPFields { response.head.headerFields }
  var header: ImageHeader { get throws { try ImageHeader(of: data) } }
  /// The code of a problem.
  var problem: String? {
    guard fields[.contentType] == "application/problem+json" else { return nil }
    return (try? JSONSerialization.jsonObject(with: data) as? [String: Any])?["code"] as? String
  }
}

extension SigningKey {
  static func fixed(_ byte: UInt8) -> SigningKey {
    guard let key = try? SigningKey(bytes: [UInt8](repeating: byte, count: 32)) else { fatalError("32 bytes are a key") }
    return key
  }
}

/// Images for the origin.
enum DrawnImage {
  static func png(_ width: Int, _ height: Int, red: UInt8 = 200, alpha: UInt8 = 255) throws -> Data {
    let buffer = PixelBuffer(size: PixelSize(width, height), channels: alpha == 255 ? .rgb : .rgba) { memory in
      let channels = alpha == 255 ? 3 : 4
      for index in memory.indices {
        memory[index] =
          switch index % channels {
          case 0: red
          case 3: alpha
          default: UInt8(truncatingIfNeeded: index / 64)
          }
      }
    }
    return try ImageEncoder.png.encode(DecodedImage(try #require(buffer)))
  }
}
#endif
