import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import Testing

@testable import ETagValidation

/// Origins that change, lie or do not support ranges. Bytes of two states are never combined, and the entry heals by itself.
@Suite("Parts that do not fit", .timeLimit(.minutes(30))) struct PartMismatchTests {
  @Test("if the origin has a new state, the whole response is new, and nothing of the old state stays", arguments: [true, false])
  func replaced(honoursIfRange: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.replace("\"2\"")
    if !honoursIfRange {
      // The server sends the range of its current state, as if the request had no If-Range.
      server.state.withLock { state in
        state.change = { [body = state.body] head, response in
          guard head.headerFields[.ifRange] != nil else { return response }
          return .response(
            .partialContent, fields: [.eTag: "\"2\"", .contentRange: "bytes 400-999/1000", .cacheControl: "max-age=600"],
            body: body[400..<1_000])
        }
      }
    }
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(try await fixture.manager.load(fixture.url).data == server.body)
    fixture.restart()
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
    #expect(server.wholes == 2, "one to the request with If-Range, and one to the request itself")
  }

  /// Responses to the request for `bytes=400-599`, of which none may be combined with the stored bytes before it.
  static let misfits: [(String, @Sendable (Data) -> ScriptedResponse)] = [
    ("another length", { .part(400..<600, of: 1_200, $0) }),
    ("another tag", { .part(400..<600, of: 1_000, tag: "\"x\"", $0) }),
    ("a weak tag", { .part(400..<600, of: 1_000, tag: "W/\"1\"", $0) }),
    ("another start", { .part(300..<500, of: 1_000, $0) }),
    ("a start beyond", { .part(500..<600, of: 1_000, $0) }),
    ("no Content-Range", { .response(.partialContent, fields: [.eTag: "\"1\""], body: $0[400..<600]) }),
    (
      "an invalid Content-Range",
      {
        .response(.partialContent, fields: [.eTag: "\"1\"", .contentRange: "bytes 600-400/1000"], body: $0[400..<600])
      }
    ),
    (
      "several parts",
      {
        .response(
          .partialContent, fields: [.eTag: "\"1\"", .contentType: "multipart/byteranges; boundary=x"], body: $0[400..<600])
      }
    ),
    ("416", { _ in .response(.rangeNotSatisfiable, fields: [.contentRange: "bytes */200"]) }),
    ("404", { _ in .response(.notFound) }),
  ]

  @Test(
    "a part that does not fit is not combined: the request itself is sent, or the body fails and the next request succeeds",
    arguments: misfits.map(\.0))
  func misfit(name: String) async throws {
    let misfit = try #require(Self.misfits.first { $0.0 == name }?.1)
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    let body = server.body
    server.state.withLock { $0.change = { $0.headerFields[.ifRange] == nil ? $1 : misfit(body) } }
    await #expect(throws: CacheError.self) { try await fixture.range("100-599") }
    for range in ["100-599", "400-599"] {
      let response = try await fixture.range(range)
      #expect(response.status == 206 && response.bytes == body[range.hasPrefix("1") ? 100..<600 : 400..<600])
    }
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("if the first missing part does not fit, the request itself is sent", arguments: misfits.map(\.0))
  func firstMisfit(name: String) async throws {
    let misfit = try #require(Self.misfits.first { $0.0 == name }?.1)
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("600-799")
    let body = server.body
    server.state.withLock { $0.change = { $0.headerFields[.ifRange] == nil ? $1 : misfit(body) } }
    #expect(try await fixture.range("400-799").bytes == body[400..<800])
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("a part without a length, or with another one than its range, is not used")
  func lengths() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    let body = server.body
    for suffix in ["", "too much"] {
      server.state.withLock {
        $0.change = { head, response in
          guard head.headerFields[.range] == "bytes=400-599" else { return response }
          let part = ScriptedResponse.response(
            .partialContent, fields: [.eTag: "\"1\"", .contentRange: "bytes 400-599/1000", .cacheControl: "max-age=600"],
            body: body[400..<600] + Data(suffix.utf8))
          return suffix.isEmpty ? part.withoutLength() : part
        }
      }
      await #expect(throws: CacheError.self) { try await fixture.range("100-599") }
      #expect(try await fixture.range("0-399").bytes == body[0..<400])
    }
    #expect(try await fixture.manager.load(fixture.url).data == body)
  }

  @Test("a shorter part than the requested one is used, and the rest is requested")
  func shorter() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    let body = server.body
    server.state.withLock {
      $0.change = { $0.headerFields[.range] == "bytes=400-599" ? ScriptedResponse.part(400..<450, of: 1_000, body) : $1 }
    }
    #expect(try await fixture.range("100-599").bytes == body[100..<600])
    #expect(fixture.network.requests.last?.headerFields[.range] == "bytes=450-599")
  }

  @Test("a part that is cut off fails the body, and the next request continues after it")
  func cut() async throws {
    let (fixture, server) = try ManagerFixture.combining(400_000)
    _ = try await fixture.range("0-99999")
    server.state.withLock { $0.change = { $1.chunked(by: 50_000).cut(after: 100_000) } }
    await #expect(throws: CacheError.self) { try await fixture.range(nil) }
    server.state.withLock { $0.change = { $1 } }
    try await Polling.until { fixture.disk.keys.count == 2 }
    server.reset()
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(server.ranges == [200_000..<400_000])
  }

  @Test("a server that ignores ranges is asked once for each request, and its response is passed on")
  func ignoring() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000) {
      $0.memory = nil; $0.store = VolatileStore()
    }
    server.state.withLock { ($0.sendsWholes, $0.cacheControl) = (true, "no-store") }
    for _ in 0..<3 {
      let response = try await fixture.range("100-")
      #expect(response.status == 200 && response.bytes == server.body)
    }
    #expect(server.wholes == 3)
    #expect(fixture.network.requests.map { $0.headerFields[.range] } == ["bytes=100-262243", "bytes=100-", "bytes=100-"])
  }

  @Test("an error of the origin that says nothing about the resource leaves the parts", arguments: [401, 403, 408, 500, 503])
  func statuses(status: Int) async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.state.withLock { $0.change = { _, _ in .response(.init(code: status)) } }
    #expect(try await fixture.range("400-599").status == status)
    server.reset()
    #expect(try await fixture.range("0-399").bytes == server.body[0..<400])
    #expect(server.ranges.isEmpty)
  }

  @Test("the whole range is requested if the origin's parts have no strong validator, without a piece the next time")
  func withoutValidator() async throws {
    let (fixture, server) = try ManagerFixture.combining(600_000)
    server.state.withLock { $0.tag = "W/\"1\"" }
    for _ in 0..<2 { #expect(try await fixture.range("1000-").bytes == server.body[1_000...]) }
    #expect(fixture.network.requests.map { $0.headerFields[.range] } == ["bytes=1000-263143", "bytes=1000-", "bytes=1000-"])
  }

  @Test("an origin that fails for a missing part fails the request, and the stored parts stay")
  func unavailable() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.state.withLock { $0.change = { _, _ in .response(.serviceUnavailable) } }
    await #expect(throws: CacheError.self) { try await fixture.range("100-599") }
    #expect(try await fixture.range("500-599").status == 503)
    #expect(try await fixture.range(nil).status == 503)
    server.state.withLock { $0.change = { $1 } }
    server.reset()
    #expect(try await fixture.range("0-399").bytes == server.body[0..<400])
    #expect(server.ranges.isEmpty)
  }

  @Test("a purge ends the parts: a later request gets none of them, and a reader that began before never gets mixed bytes")
  func purged() async throws {
    let (fixture, server) = try ManagerFixture.combining(2 << 20)
    let response = try await fixture.exchange([.range: "bytes=0-"])
    var iterator = response.body.makeAsyncIterator()
    var bytes = try #require(try await iterator.next())
    try await fixture.manager.remove(fixture.url)
    server.replace("\"2\"")
    #expect(try await fixture.range("10-19").bytes == server.body[10..<20])
    while let chunk = try? await iterator.next() { bytes += chunk }
    #expect(bytes == RangeServer.bytes(2 << 20).prefix(bytes.count) && bytes.count < 2 << 20)
  }

  @Test("parts with no-cache are confirmed by each request, and a whole of them too")
  func noCache() async throws {
    let (fixture, server) = try ManagerFixture.combining(600_000)
    server.state.withLock { $0.cacheControl = "no-cache, max-age=600" }
    let reader = try await fixture.exchange([.range: "bytes=0-"])
    let count = fixture.network.requests.count
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
    #expect(fixture.network.requests.count > count, "a reader of the same parts does not validate for another one")
    #expect(try await reader.body.collect() == server.body)
    for _ in 0..<2 {
      let count = fixture.network.requests.count
      #expect(try await fixture.range(nil).bytes == server.body)
      #expect(fixture.network.requests.count > count)
    }
  }

  @Test("a part with no-store is used once, and the whole of which it is a part is not stored")
  func noStore() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399")
    server.state.withLock { $0.cacheControl = "no-store" }
    #expect(try await fixture.range(nil).bytes == server.body)
    server.reset()
    #expect(try await fixture.range(nil).bytes == server.body)
    #expect(server.ranges == [400..<1_000])
  }

  @Test("only-if-cached and the policy cacheOnly send no request, also if a part was removed meanwhile")
  func cacheOnly() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000) { $0.memory = nil }
    _ = try await fixture.range("0-399")
    _ = try await fixture.range("600-999")
    server.reset()
    let count = fixture.network.requests.count
    #expect(try await fixture.range(nil, [.cacheControl: "only-if-cached"]).status == 504)
    let error = try await fixture.failure(fixture.url, .policy(.cacheOnly))
    #expect(error.code == .notCached)
    #expect(fixture.network.requests.count == count)
  }

  @Test("a request with another If-Range gets the whole, however many parts it arrives in")
  func ifRange() async throws {
    let (fixture, server) = try ManagerFixture.combining(40_000)
    for start in stride(from: 0, to: 18_000, by: 2_000) { _ = try await fixture.range("\(start)-\(start + 1_999)") }
    let response = try await fixture.range("30000-30999", [.ifRange: "\"old\""])
    #expect(response.status == 200 && response.bytes == server.body)
    for _ in 0..<2 {
      #expect(try await fixture.range(nil).bytes == server.body)
      fixture.restart()
    }
  }

  @Test("a cancelled reload does not replace the whole response by its first part", arguments: [true, false])
  func cancelledReload(readsDisk: Bool) async throws {
    let (fixture, server) = try ManagerFixture.combining(400_000) { $0.memory = nil }
    _ = try await fixture.range(nil)
    server.state.withLock { $0.change = { $1.chunked(by: 50_000).cut(after: 200_000) } }
    let options = RequestOptions { if readsDisk { $0.policy = .revalidate() } else { $0.policy = .reload } }
    server.replace("\"2\"")
    let response = try await fixture.exchange(options: options)
    await #expect(throws: CacheError.self) { try await response.body.collect() }
    // The part would be stored in a task of its own.
    for _ in 0..<200 { await Task.yield() }
    server.state.withLock { $0.change = { _, _ in .failure(.offline) } }
    let stored = try await fixture.exchange(options: RequestOptions { ($0.policy, $0.staleFallback) = (.cacheFirst, .anyStored) })
    #expect(try await stored.body.collect() == RangeServer.bytes(400_000))
  }

  @Test("a disk that is full when parts are merged loses none of them")
  func fullDisk() async throws {
    let (fixture, server) = try ManagerFixture.combining(64_000) { $0.memory = nil }
    for start in stride(from: 0, to: 14_000, by: 2_000) { _ = try await fixture.range("\(start)-\(start + 1_999)") }
    let reader = try await fixture.exchange([.range: "bytes=14000-15999"])
    fixture.disk.refusesWrites = true
    _ = try await reader.body.collect()
    for _ in 0..<200 { await Task.yield() }
    fixture.disk.refusesWrites = false
    server.reset()
    #expect(try await fixture.range("0-13999").bytes == server.body[0..<14_000])
    #expect(server.ranges.isEmpty)
  }

  @Test("requests with other credentials share no parts")
  func credentials() async throws {
    let (fixture, server) = try ManagerFixture.combining(1_000)
    _ = try await fixture.range("0-399", [.authorization: "a"])
    _ = try await fixture.range("0-399", [.authorization: "b"])
    #expect(server.ranges == [0..<400, 0..<400])
    #expect(try await fixture.range("0-499", [.authorization: "a"]).bytes == server.body[0..<500])
    #expect(server.ranges.last == 400..<500)
  }

  @Test(
    "a part that is not fresh is shared only by requests with equal fields",
    arguments: ["no-cache", "max-age=0", "public, no-cache"])
  func user(cacheControl: String) async throws {
    let (fixture, server) = try ManagerFixture.combining(400_000, mode: .shared)
    let (gate, name) = (Gate(), try #require(HTTPField.Name("X-User")))
    server.state.withLock { state in
      state.cacheControl = cacheControl
      state.change = { head, response in
        guard head.headerFields[name] == "bob" else { return response.held(by: gate) }
        return .part(100..<200, of: 400_000, tag: "\"bob\"", RangeServer.bytes(400_000, seed: 9)).held(by: gate)
      }
    }
    let alice = (0..<2).map { _ in Task { try await fixture.range("100-199", [name: "alice"]).bytes } }
    await gate.arrived()
    let bob = Task { try await fixture.range("100-199", [name: "bob"]).bytes }
    for _ in 0..<100 { await Task.yield() }
    gate.open()
    for alice in alice { #expect(try await alice.value == server.body[100..<200]) }
    #expect(try await bob.value == RangeServer.bytes(400_000, seed: 9)[100..<200])
  }

  @Test(
    "a missing part that must not be stored is for one request alone", arguments: ["no-store", "private"], [nil, "0-299999"])
  func alone(cacheControl: String, range: String?) async throws {
    let (fixture, server) = try ManagerFixture.combining(300_000, mode: .shared)
    _ = try await fixture.range("0-99999")
    let gate = Gate()
    server.reset()
    server.state.withLock { state in
      state.cacheControl = cacheControl
      state.change = { $1.held(by: gate) }
    }
    let readers = (0..<3).map { _ in Task { try await fixture.range(range).bytes } }
    await gate.arrived()
    for _ in 0..<100 { await Task.yield() }
    gate.open()
    for reader in readers { #expect(try await reader.value == server.body) }
    #expect(server.ranges == Array(repeating: 100_000..<300_000, count: 3) && server.wholes == 0)
  }

  @Test("no request gets a part from the body of another one that is for that one alone")
  func laterPart() async throws {
    let (fixture, server) = try ManagerFixture.combining(3 << 20, mode: .shared)
    _ = try await fixture.range("0-99999")
    let gate = Gate()
    server.state.withLock { state in
      state.change = { head, response in
        let range = head.headerFields[.range] ?? ""
        if range.hasPrefix("bytes=1148576-") {
          return .part(1_148_576..<2_197_152, of: 3 << 20, cacheControl: "private", RangeServer.bytes(3 << 20))
        }
        guard range.hasPrefix("bytes=100000-") else { return response }
        return response.held(by: gate)
      }
    }
    let readers = (0..<3).map { _ in Task { try await fixture.range(nil).bytes } }
    await gate.arrived()
    try await Polling.until {
      fixture.observer.events.count { if case .joined = $0 { true } else { false } } == 2
    }
    gate.open()
    var complete = 0
    for reader in readers {
      do {
        #expect(try await reader.value == server.body)
        complete += 1
      } catch {
        #expect((error as? CacheError)?.code == .bodyInterrupted)
      }
    }
    // A request whose shared body has ended before it has begun to read it is sent itself.
    #expect(complete <= server.ranges.count { $0.lowerBound == 1_148_576 })
  }

  @Test("a load with a part that must not be stored is for one caller alone")
  func load() async throws {
    let (fixture, server) = try ManagerFixture.combining(300_000)
    _ = try await fixture.range("0-99999")
    let gate = Gate()
    server.state.withLock { state in
      state.cacheControl = "no-store"
      state.change = { $1.held(by: gate) }
    }
    let loads = (0..<2).map { _ in Task { try await fixture.manager.load(fixture.url).data } }
    await gate.arrived()
    try await Polling.until { fixture.observer.events.contains { if case .joined = $0 { true } else { false } } }
    gate.open()
    for load in loads { #expect(try await load.value == server.body) }
    #expect(server.ranges.count { $0 == 100_000..<300_000 } + server.wholes == 2)
  }

  @Test("a whole response that no store accepts leaves the parts of the same state")
  func unstored() async throws {
    let (fixture, server) = try ManagerFixture.combining(400_000, mode: .shared) {
      ($0.store, $0.maximumBodyInMemory) = (nil, 100_000)
    }
    _ = try await fixture.range("0-99")
    // The server may send the whole for several ranges.
    server.state.withLock { $0.sendsWholes = true }
    #expect(try await fixture.range("0-9,20-29").bytes == server.body)
    server.reset()
    server.state.withLock { $0.sendsWholes = false }
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
    #expect(server.ranges.isEmpty)
    server.replace("\"2\"")
    server.state.withLock { $0.sendsWholes = true }
    #expect(try await fixture.range("0-9,20-29").bytes == server.body)
    server.state.withLock { $0.sendsWholes = false }
    #expect(try await fixture.range("0-99").bytes == server.body[0..<100])
    #expect(server.ranges == [0..<100])
  }

  @Test(
    "a range of a damaged file is requested from the origin, of a part and of a whole response", arguments: [nil, "0-399999"],
    ["100-299", "1000-300000"])
  func damaged(stored: String?, range: String) async throws {
    let folder = try DownloadFolder()
    let path = folder.url.appending(path: "cache")
    let (fixture, server) = try ManagerFixture.combining(400_001, mode: .shared) {
      $0.memory = nil
      $0.store = try? DiskCache(folder: path)
    }
    #expect(try await fixture.range(stored).bytes.count >= 400_000)
    await fixture.manager.close()
    let file = try #require(Self.files(in: path).max { $0.count < $1.count })
    var bytes = file.bytes
    bytes[5_000] ^= 1
    try bytes.write(to: file.url)
    let (later, _) = try ManagerFixture.combining(400_001, mode: .shared) {
      $0.memory = nil
      $0.store = try? DiskCache(folder: path)
      $0.downloader = fixture.network
    }
    let ends = range.split(separator: "-").compactMap { Int($0) }
    for _ in 0..<2 {
      let reply = try await later.range(range)
      #expect(reply.status == 206 && reply.bytes == server.body[ends[0]...ends[1]])
    }
  }

  private static func files(in folder: URL) -> [(url: URL, count: Int, bytes: Data)] {
    let names = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL } ?? []
    return names.compactMap { url in (try? Data(contentsOf: url)).map { (url, $0.count, $0) } }
  }
}
