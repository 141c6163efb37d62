#if Redis && Origin
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes

/// A resource of the healthy origin. Its bytes are derived from its number, its version and a language, so each response states
/// its version, and every byte of it can be checked.
struct VersionedResource: Sendable {
  /// The small resources that stay in memory.
  static let hot = 0..<32
  /// The resources of up to 300 KB.
  static let items = 32..<396
  /// The resources of 5 MB.
  static let large = 396..<400
  static let count = large.upperBound
  static let languages = ["de", "en"]

  let number: Int

  init(_ number: Int) { self.number = number }

  private var kind: String { Self.hot.contains(number) ? "hot" : Self.items.contains(number) ? "item" : "large" }

  private static let origin = "https://faults.example/"

  var url: URL { URL(string: "\(Self.origin)\(kind)/\(number)") ?? URL(filePath: "/") }

  /// Creates the resource that a request names.
  init?(_ request: HTTPRequest) {
    guard let number = request.path?.split(separator: "/").last.flatMap({ Int($0) }), number < Self.count else { return nil }
    self.init(number)
  }

  /// The time for which a response is fresh, in seconds.
  var lifetime: Int64 {
    guard Self.items.contains(number) else { return 3_600 }
    return switch number % 5 {
    case 0: 2
    case 1: 20
    default: 3_600
    }
  }

  var tag: String? {
    switch kind {
    case "hot": "hot-\(number % Self.hotTags)"
    case "item": number % 3 == 0 ? nil : "group-\(number % Self.groups)"
    default: "large"
    }
  }

  private static let hotTags = 4
  private static let groups = 16

  /// Whether the request field `Accept-Language` selects the response.
  var varies: Bool { Self.items.contains(number) && number % 10 == 7 }

  func length(_ version: UInt64) -> Int {
    let base =
      switch kind {
      case "hot": 1_000 + number * 100
      case "item": Int(1_000 * pow(300, Double(number * 37 % 101) / 100))
      default: 5_000_000
      }
    return base + Int(version % 7)
  }

  func body(_ version: UInt64, _ language: String?) -> Data {
    let index = language.flatMap { Self.languages.firstIndex(of: $0) } ?? -1
    var generator = SplitMix(state: UInt64(number) << 44 ^ version << 4 ^ UInt64(index + 1))
    let length = length(version)
    var data = Data(count: (length + 7) / 8 * 8)
    data.withUnsafeMutableBytes { bytes in
      let words = bytes.assumingMemoryBound(to: UInt64.self)
      for index in words.indices { words[index] = generator.next() }
    }
    return data.prefix(length)
  }

  func etag(_ version: UInt64, _ language: String?) -> String { "\"\(number)-\(version)-\(language ?? "")\"" }

  /// Returns the version that a response states, or `nil` if it is not a response of this resource.
  func version(_ response: HTTPResponse, _ language: String?) -> UInt64? {
    let parts = (response.headerFields[.eTag] ?? "").split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, let version = UInt64(parts[1]), response.headerFields[.eTag] == etag(version, language) else {
      return nil
    }
    return version
  }

  // MARK: Purges

  /// Returns a random selection for a purge, and the numbers of the resources in it.
  static func purge(_ generator: inout SplitMix) -> (PurgeSelection, [Int]) {
    let all = 0..<count
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<45:
      let tag = "group-\(Int.random(in: 0..<groups, using: &generator))"
      return (.tag(tag), all.filter { VersionedResource($0).tag == tag })
    case 45..<55:
      let tag = "hot-\(Int.random(in: 0..<hotTags, using: &generator))"
      return (.tag(tag), all.filter { VersionedResource($0).tag == tag })
    case 55..<90:
      let number = items.randomElement(using: &generator) ?? 0
      return (.url(VersionedResource(number).url), [number])
    case 90..<98: return (.prefix(URL(string: "\(origin)large/") ?? URL(filePath: "/")), Array(large))
    default: return (.everything, Array(all))
    }
  }
}
#endif
