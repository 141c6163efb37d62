import Etagere
import Foundation
import Testing

/// A third-party server: nginx with a folder, with `etag on`, `gzip on` for every type from 100 bytes, and `expires 1h` below
/// `/fresh/`.
private struct ForeignServer {
  let address: String
  let root: String

  static let shared: ForeignServer? = {
    let environment = ProcessInfo.processInfo.environment
    guard let address = environment["ETAGERE_INTEROP_ORIGIN"], let root = environment["ETAGERE_INTEROP_ROOT"] else { return nil }
    return ForeignServer(address: address.hasSuffix("/") ? String(address.dropLast()) : address, root: root)
  }()

  /// Creates a file, and returns it with its URL.
  func file(_ data: Data, in folder: String = "", suffix: String = "txt") throws -> ServedFile {
    let path = "\(folder)/\(Revision.random()).\(suffix)"
    let file = URL(filePath: root + path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    let served = ServedFile(file: file, url: try #require(URL(string: address + path)))
    try served.write(data, secondsAgo: 3_600)
    return served
  }
}

/// One file of the server.
private struct ServedFile {
  let file: URL
  let url: URL

  /// Writes the file. The entity tags of nginx consist of whole seconds and the size, so a change must affect one of them.
  func write(_ data: Data, secondsAgo: TimeInterval) throws {
    try data.write(to: file)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -secondsAgo)], ofItemAtPath: file.path(percentEncoded: false))
  }

  func remove() throws { try FileManager.default.removeItem(at: file) }
}

@Suite("Interoperability with nginx", .enabled(if: ForeignServer.shared != nil), .timeLimit(.minutes(30)))
struct InteropTests {
  private let server: ForeignServer
  private let folder: TemporaryFolder
  private let manager: ResourceManager

  init() throws {
    server = try #require(ForeignServer.shared)
    folder = try TemporaryFolder()
    manager = try .standard(folder)
  }

  @Test("an unchanged file is confirmed by its entity tag, without a body, before and after a restart")
  func entityTag() async throws {
    let served = try server.file(Data("small".utf8))
    let first = try await manager.load(served.url)
    #expect(first.source == .network)
    #expect(first.response.headerFields[.eTag] != nil)
    #expect(first.response.headerFields[.lastModified] != nil)

    for manager in [manager, try ResourceManager.standard(folder)] {
      let again = try await manager.load(served.url)
      #expect(again.data == Data("small".utf8))
      #expect(again.source == .revalidated)
      #expect(again.validation == .notModified)
      #expect(again.bytesOnWire == 0)
      #expect(again.revision == first.revision)
    }
  }

  @Test("an unchanged file is confirmed by its date alone, if the response has no entity tag")
  func lastModified() async throws {
    let served = try server.file(Data("dated".utf8))
    let manager = try ResourceManager.standard(folder) { configuration in
      configuration.downloader = TaglessDownloader(engine: configuration.downloader)
    }
    #expect(try await manager.load(served.url).response.headerFields[.eTag] == nil)
    let again = try await manager.load(served.url)
    #expect(again.source == .revalidated)
    #expect(again.bytesOnWire == 0)
    #expect(again.data == Data("dated".utf8))
  }

  @Test("a changed file is sent again")
  func changed() async throws {
    let served = try server.file(Data("before".utf8))
    _ = try await manager.load(served.url)
    try served.write(Data("after!".utf8), secondsAgo: 1_800)
    let changed = try await manager.load(served.url)
    #expect(changed.data == Data("after!".utf8))
    #expect(changed.source == .network)
    #expect(changed.validation == .modified)
  }

  @Test("a file with a lifetime is not requested again, in memory, after a restart and after its removal")
  func expires() async throws {
    let served = try server.file(Data("long lived".utf8), in: "/fresh")
    #expect(try await manager.load(served.url).source == .network)
    try served.remove()
    #expect(try await manager.load(served.url).source == .memory)
    let restarted = try await ResourceManager.standard(folder).load(served.url)
    #expect(restarted.source == .disk)
    #expect(restarted.data == Data("long lived".utf8))
    #expect(
      await failure { _ = try await manager.load(served.url, options: RequestOptions { $0.policy = .reload }) }?.status == 404)
  }

  @Test("a compressed text is decoded completely, and is confirmed by its weak entity tag")
  func compressed() async throws {
    let text = Data(String(repeating: "a line that says the same again and again\n", count: 250).utf8)
    let served = try server.file(text)
    let first = try await manager.load(served.url)
    #expect(first.data == text)
    #expect(first.response.headerFields[.eTag]?.hasPrefix("W/") == true)

    for manager in [manager, try ResourceManager.standard(folder)] {
      let again = try await manager.load(served.url)
      #expect(again.data == text)
      #expect(again.source == .revalidated)
      #expect(again.bytesOnWire == 0)
    }
  }

  @Test("a missing file is an error with its status, and is found as soon as it exists")
  func notFound() async throws {
    let served = try server.file(Data("later".utf8))
    try served.remove()
    let error = await failure { _ = try await manager.load(served.url) }
    #expect(error?.code == .unacceptableStatus)
    #expect(error?.status == 404)
    #expect(error?.url == served.url.absoluteString)

    try served.write(Data("later".utf8), secondsAgo: 60)
    #expect(try await manager.load(served.url).data == Data("later".utf8))
  }

  @Test("a server that offers ranges receives no range request")
  func ranges() async throws {
    let served = try server.file(Data("whole".utf8))
    let resource = try await manager.load(served.url)
    #expect(resource.response.headerFields[.acceptRanges] == "bytes")
    #expect(resource.response.status == .ok)
    #expect(resource.response.headerFields[.contentRange] == nil)
    #expect(resource.data == Data("whole".utf8))
  }

  @Test("20 MB are equal byte by byte, from the network and from the disk")
  func large() async throws {
    var generator = SystemRandomNumberGenerator()
    var data = Data(capacity: 20 << 20)
    while data.count < 20 << 20 { withUnsafeBytes(of: generator.next()) { data.append(contentsOf: $0) } }
    let served = try server.file(data, in: "/fresh", suffix: "bin")
    #expect(try await manager.load(served.url).data == data)
    let stored = try await ResourceManager.standard(folder).load(served.url)
    #expect(stored.source == .disk)
    #expect(stored.data == data)
    try served.remove()
  }
}

/// A downloader that removes entity tags, so that only dates remain.
private struct TaglessDownloader: Downloader {
  let engine: (any Downloader)?

  var id: ComponentID { ComponentID(TaglessDownloader.self, parameters: engine.map { "\($0.id)" } ?? "") }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse {
    guard let engine else { throw CacheError(.noDownloader, reason: "no engine") }
    var response = try await engine.download(request)
    response.head.headerFields[.eTag] = nil
    return response
  }
}
