import CacheCore
import CacheManager
import CacheTesting
import CacheTransport
import ETagValidation
import Foundation
import HTTPTypes
import MemoryStore
import Testing

@Suite("Values of local files")
struct LocalFileValueTests {
  private let folder: TemporaryFolder
  private let memory = MemoryCache()
  private let disk = VolatileStore()
  private let network = ScriptedDownloader()
  private let manager: ResourceManager
  private let decoder = Text()

  /// A decoder that counts its work.
  private final class Text: ResourceDecoder {
    let id = ComponentID(Text.self)
    let decoded = Lock(0)

    func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String {
      decoded.withLock { $0 += 1 }
      return String(decoding: data, as: UTF8.self)
    }

    func cost(of value: String) -> Int { value.utf8.count }
  }

  init() throws {
    folder = try TemporaryFolder()
    manager = ResourceManager(
      ResourceManager.Configuration { [memory, disk, network] in
        $0.downloader = network
        $0.schemeHandlers["file"] = FileDownloader()
        ($0.memory, $0.store, $0.validator) = (memory, disk, ETagValidator())
      })
  }

  private var decodings: Int { decoder.decoded.withLock { $0 } }

  private var plain: ResourceTransform<String> { ResourceTransform(decoder: decoder) }

  /// A transform whose encoded values are larger than the original.
  private var coded: ResourceTransform<String> {
    plain.stored(as: "padded") {
      Data("padded \($0)".utf8)
    } decode: {
      String(String(decoding: $0, as: UTF8.self).dropFirst(7))
    }
  }

  private func put(_ text: String) throws -> URL {
    try folder.put(Data(text.utf8), "file")
    return folder.url("file")
  }

  /// The transforms that each layer has. The original has an empty name.
  private var layers: [Set<String>] {
    [Set(memory.keys().map(\.transform).filter { !$0.hasPrefix("\u{1F}") }), Set(disk.keys.map(\.transform))]
  }

  @Test(
    "a value is stored and used again until the file changes, and no copy of the file is stored",
    arguments: [StoragePolicy.variants, .all, .automatic])
  func stored(_ policy: StoragePolicy) async throws {
    let options = RequestOptions { $0.storagePolicy = policy }
    let url = try put("one")

    let made = try await manager.load(url, as: coded, options: options)
    #expect(made.value == "one" && made.source == .schemeHandler && made.valueOrigin == .transformed)
    #expect(layers == [[coded.id], [coded.id]])

    let confirmed = try await manager.load(url, as: coded, options: options)
    #expect(confirmed.value == "one" && confirmed.source == .revalidated && confirmed.valueOrigin == .memory)
    memory.removeAll()
    let restored = try await manager.load(url, as: coded, options: options)
    #expect(restored.value == "one" && restored.source == .revalidated && restored.valueOrigin == .disk)
    #expect(decodings == 1)

    _ = try put("two")
    let changed = try await manager.load(url, as: coded, options: options)
    #expect(changed.value == "two" && changed.valueOrigin == .transformed && decodings == 2)
    #expect(try await manager.load(url, as: coded, options: options).source == .revalidated)
    #expect(layers == [[coded.id], [coded.id]])
  }

  @Test("a value without an encoder is confirmed in memory, and nothing is on disk")
  func uncoded() async throws {
    let url = try put("one")
    #expect(try await manager.load(url, as: plain).value == "one")
    let confirmed = try await manager.load(url, as: plain)
    #expect(confirmed.source == .revalidated && confirmed.valueOrigin == .memory && decodings == 1)
    #expect(disk.keys.isEmpty)
    _ = try put("two")
    #expect(try await manager.load(url, as: plain).value == "two")
    #expect(disk.keys.isEmpty)
  }

  @Test("the bytes of a file are stored nowhere, and are always those of the file")
  func bytes() async throws {
    let url = try put("one")
    let target = folder.url("copy")
    #expect(String(decoding: try await manager.load(url).data, as: UTF8.self) == "one")
    _ = try await manager.load(url, to: target)
    #expect(try String(contentsOf: target, encoding: .utf8) == "one")
    #expect(layers == [[], []])
    let report = await manager.prefetch([url], into: .disk)
    #expect(report.failed.count == 1 && layers == [[], []])
    _ = try put("two")
    #expect(String(decoding: try await manager.load(url).data, as: UTF8.self) == "two")
  }

  @Test("with the policy for originals, nothing is on disk, and memory confirms the value")
  func originals() async throws {
    let options = RequestOptions { $0.storagePolicy = .originals }
    let url = try put("one")
    _ = try await manager.load(url, as: coded, options: options)
    #expect(try await manager.load(url, as: coded, options: options).source == .revalidated)
    #expect(decodings == 1 && disk.keys.isEmpty)
  }

  @Test("a file that replaces a failed original is not stored as the original")
  func mirror() async throws {
    let (url, file) = (try #require(URL(string: "https://example.com/a")), try put("local"))
    network.respond(to: url, with: .failure(.offline), .ok("remote", cacheControl: "max-age=60"))
    let options = RequestOptions { $0.alternatives = [.mirror(file)] }
    #expect(try await manager.load(url, as: coded, options: options).value == "local")
    #expect(layers == [[], []])
    #expect(try await manager.load(url, as: coded, options: options).value == "remote")
  }
}
