import CacheCore
import CacheManager
import CacheTesting
import Foundation
import MemoryStore

/// Transforms of text that count their work.
final class TextTransformFixture: Sendable {
  struct Decoder: ResourceDecoder {
    let shop: TextTransformFixture
    var id: ComponentID { ComponentID(Self.self, parameters: "utf8") }

    func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String {
      shop.decoded.increment()
      return String(decoding: data, as: UTF8.self)
    }

    func cost(of value: String) -> Int { value.utf8.count }
  }

  /// The number of originals that were decoded.
  let decoded = Counter()
  /// The number of values that were decoded from stored variants.
  let restored = Counter()
  let encoded = Counter()

  /// Returns a transform to the first characters in upper case, which are stored between angle brackets.
  func short(_ count: Int = 2) -> ResourceTransform<String> { coded(plain(count)) }

  /// Returns the same transform, whose values are never stored.
  func plain(_ count: Int = 2) -> ResourceTransform<String> {
    whole.map("first \(count)") { String($0.prefix(count)).uppercased() }
  }

  /// A transform that only decodes.
  var whole: ResourceTransform<String> { ResourceTransform(decoder: Decoder(shop: self)) }

  func coded(_ transform: ResourceTransform<String>) -> ResourceTransform<String> {
    transform.stored(as: "brackets") { [encoded] value in
      encoded.increment()
      return Data("<\(value)>".utf8)
    } decode: { [restored] data throws(CacheError) in
      let text = String(decoding: data, as: UTF8.self)
      guard text.hasPrefix("<"), text.hasSuffix(">") else { throw CacheError(.decodingFailed, reason: "no brackets") }
      restored.increment()
      return String(text.dropFirst().dropLast())
    }
  }
}

extension RequestOptions {
  static func keeping(_ policy: StoragePolicy, _ change: (inout RequestOptions) -> Void = { _ in }) -> RequestOptions {
    var options = RequestOptions(change)
    options.storagePolicy = policy
    return options
  }
}

extension ManagerFixture {
  func load<Value>(
    _ transform: ResourceTransform<Value>, _ options: RequestOptions = RequestOptions(), at url: URL? = nil
  ) async throws -> Resource<Value> {
    try await manager.load(url ?? self.url, as: transform, options: options)
  }

  /// Returns the stored transforms of a URL in order. The original has an empty name.
  func stored(_ url: URL? = nil) -> [String] {
    disk.keys.filter { $0.resource == (url ?? self.url).absoluteString }.map(\.transform).sorted()
  }

  /// Returns the transforms of a URL in memory, in order. The original has an empty name. The list of variants is left out.
  func inMemory(_ url: URL? = nil) -> [String] {
    let resource = (url ?? self.url).absoluteString
    let transforms = memory.keys().compactMap { $0.resource == resource ? $0.transform : nil }
    return transforms.filter { !$0.hasPrefix("\u{1F}") }.sorted()
  }

  /// Returns the key of a transform on disk.
  func key<Value>(_ transform: ResourceTransform<Value>) -> CacheKey {
    CacheKey(resource: url.absoluteString, transform: transform.id)
  }
}

extension Resource {
  /// The source of the response and the origin of the value.
  var origins: String { "\(source) \(valueOrigin)" }
}
