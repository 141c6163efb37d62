import CacheCore
import CacheManager
import CacheTesting
import Foundation
import HTTPTypes
import Testing

/// An origin that counts the bytes of its chunks that are in memory.
private final class CountedOrigin: Sendable {
  private struct State {
    var live = 0
    var peak = 0
    var requests = 0
  }

  let length: Int
  let chunk: Int
  let statesLength: Bool
  private let state = Lock(State())

  init(_ length: Int, chunk: Int, statesLength: Bool) {
    (self.length, self.chunk, self.statesLength) = (length, chunk, statesLength)
  }

  var live: Int { state.withLock { $0.live } }
  var peak: Int { state.withLock { $0.peak } }
  var requests: Int { state.withLock { $0.requests } }

  private static let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8 ^ $0 >> 16) })

  /// Whether bytes are those from this position on.
  static func matches(_ data: Data, at position: Int) -> Bool { data == bytes.dropFirst(position).prefix(data.count) }

  var response: DownloadResponse {
    state.withLock { $0.requests += 1 }
    let body = ResourceBody(length: statesLength ? Int64(length) : nil, source: Source(self))
    return DownloadResponse(
      head: HTTPResponse(status: .ok, headerFields: [.cacheControl: "max-age=60"]), body: body, metrics: { TransferMetrics() })
  }

  private func bytes(_ range: Range<Int>) -> Data {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: range.count, alignment: 16)
    Self.bytes[range].copyBytes(to: copy)
    guard let start = copy.baseAddress else { return Data() }
    state.withLock { state in
      state.live += range.count
      state.peak = max(state.peak, state.live)
    }
    return Data(
      bytesNoCopy: start, count: range.count,
      deallocator: .custom { [self] start, count in
        start.deallocate()
        state.withLock { $0.live -= count }
      })
  }

  private final class Source: ResourceBody.Source {
    private let origin: CountedOrigin
    private let position = Lock(0)

    init(_ origin: CountedOrigin) { self.origin = origin }

    var trailers: HTTPFields? { nil }

    func cancel() {}

    func next() async throws(CacheError) -> Data? {
      let range = position.withLock { position in
        let start = position
        position = min(start + origin.chunk, origin.length)
        return start..<position
      }
      return range.isEmpty ? nil : origin.bytes(range)
    }
  }
}

/// Tests with a memory budget that has no room for a whole body.
@Suite("The memory and the temporary files of shared bodies")
struct SharedBodyMemoryTests {
  private static let chunk = 50_000
  /// The most bytes that a body may hold: the limit, a chunk that has just arrived, and one that its reader holds.
  private static let most = (256 << 10) + 2 * chunk

  private let folder: DownloadFolder

  init() throws { folder = try DownloadFolder() }

  private func fixture(
    _ origin: CountedOrigin, head gate: Gate = Gate(isOpen: true), limit: Int64 = 1 << 30, fleet: LocalFleet? = nil
  ) throws -> ManagerFixture {
    try ManagerFixture(fleet == nil ? .memory : .everywhere) {
      $0.fleet = fleet
      $0.downloader = ClosureDownloader { _ throws(CacheError) in
        await gate.pass()
        return origin.response
      }
      $0.memoryBudget = 400_000
      $0.temporaryFolder = folder.url
      $0.maximumTemporaryBytes = limit
    }
  }

  /// Reads at least this many bytes, or to the end, and verifies them.
  ///
  /// - Returns: The number of bytes read so far.
  private func read(_ body: ResourceBody, from start: Int = 0, upTo end: Int = .max) async throws -> Int {
    var position = start
    while position < end, let chunk = try await body.source.next() {
      #expect(CountedOrigin.matches(chunk, at: position))
      position += chunk.count
    }
    return position
  }

  /// The number of open files that were created in the folder.
  private var openFiles: Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    let path = folder.url.lastPathComponent
    return names.count {
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?.contains(path) == true
    }
  }

  private func expectOpenFiles(_ count: Int) {
    #if os(Linux)
    #expect(openFiles == count)
    #endif
  }

  private func expectNothingHeld(_ origin: CountedOrigin, _ fixture: ManagerFixture) async throws {
    try await Polling.until(limit: 60_000) { origin.live == 0 && openFiles == 0 && fixture.manager.memoryUse.inUse == 0 }
    #expect(folder.names.isEmpty)
  }

  @Test(
    "many clients that stop within their bodies hold a bounded part of each, no file, and nothing after they have left",
    arguments: [true, false])
  func stopped(statesLength: Bool) async throws {
    let origin = CountedOrigin(1_500_000, chunk: Self.chunk, statesLength: statesLength)
    let fixture = try fixture(origin)
    var bodies: [ResourceBody] = []
    for number in 1...40 {
      let body = try await fixture.exchange(path: "/\(number)").body
      #expect(try await read(body, upTo: 1_000_000) == 1_000_000)
      bodies.append(body)
      #expect(origin.live <= number * Self.most)
    }
    expectOpenFiles(0)
    for body in bodies { body.source.cancel() }
    bodies = []
    try await expectNothingHeld(origin, fixture)
  }

  @Test(
    "what a slow reader lags behind is in memory up to the limit and in one temporary file beyond it", arguments: [true, false])
  func lagging(statesLength: Bool) async throws {
    let origin = CountedOrigin(3_000_000, chunk: Self.chunk, statesLength: statesLength)
    let fixture = try fixture(origin)
    var slow: [ResourceBody] = [try await fixture.exchange().body]
    #expect(try await read(slow[0], upTo: 1) == Self.chunk)
    slow.append(try await fixture.exchange().body)
    var fast: [ResourceBody] = [try await fixture.exchange().body]
    #expect(try await read(fast[0]) == origin.length)
    // The queue may release the chunks that it has written a little later.
    #expect(origin.peak <= 2 * Self.most)
    #expect(fixture.manager.memoryUse.inUse == 0)
    expectOpenFiles(1)
    #expect(folder.names.isEmpty)

    #expect(try await read(slow[0], from: Self.chunk) == origin.length)
    #expect(try await read(slow[1]) == origin.length)
    #expect(origin.requests == 1)
    (slow, fast) = ([], [])
    try await expectNothingHeld(origin, fixture)
  }

  @Test("readers that keep pace with each other do not read the file, and one that leaves closes nothing")
  func leaving() async throws {
    let origin = CountedOrigin(2_000_000, chunk: Self.chunk, statesLength: true)
    let fixture = try fixture(origin)
    let bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
    for end in stride(from: Self.chunk, through: 1_000_000, by: Self.chunk) {
      for body in bodies { #expect(try await read(body, from: end - Self.chunk, upTo: end) == end) }
    }
    let late = try await fixture.exchange().body
    bodies[0].source.cancel()
    #expect(try await read(late) == origin.length)
    #expect(try await read(bodies[1], from: 1_000_000) == origin.length)
    #expect(origin.requests == 1)
  }

  @Test("if no temporary file can be created, readers that fall behind fail, and the others continue", arguments: [true, false])
  func noFile(isFirstSlow: Bool) async throws {
    try FileManager.default.removeItem(at: folder.url)
    let origin = CountedOrigin(1_500_000, chunk: Self.chunk, statesLength: true)
    let fixture = try fixture(origin)
    var bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
    if isFirstSlow { bodies.reverse() }
    #expect(try await read(bodies[0]) == origin.length)
    let error = await #expect(throws: CacheError.self) { try await read(bodies[1]) }
    #expect(error?.code == .fileSystem && error?.path?.hasPrefix(folder.url.path) == true)
    #expect(error?.reason.hasPrefix("cannot create the temporary file of a body for readers that fell behind: ") == true)
    // Later requests do not join it.
    #expect(try await read(fixture.exchange().body) == origin.length)
    #expect(origin.requests == 2)
  }

  @Test("beside a single reader that has passed the limit, one more request is sent, and all later ones share its body")
  func late() async throws {
    let origin = CountedOrigin(1_500_000, chunk: Self.chunk, statesLength: true)
    let fixture = try fixture(origin)
    let first = try await fixture.exchange().body
    #expect(try await read(first, upTo: 500_000) == 500_000)
    expectOpenFiles(0)
    let second = try await fixture.exchange().body
    #expect(try await read(second, upTo: 1_000_000) == 1_000_000)
    for _ in 0..<3 {
      let later = try await fixture.exchange()
      #expect(later.status.description == ManagerFixture.collapsed)
      #expect(try await read(later.body, upTo: 700_000) >= 700_000)
    }
    #expect(try await read(first, from: 500_000) == origin.length)
    #expect(try await read(second, from: 1_000_000) == origin.length)
    #expect(origin.requests == 2)
  }

  @Test("the request that is sent beside a single reader does not wait for that reader's lease", .timeLimit(.minutes(30)))
  func leased() async throws {
    let origin = CountedOrigin(1_500_000, chunk: Self.chunk, statesLength: true)
    let fleet = LocalFleet()
    let fixture = try fixture(origin, fleet: fleet)
    let first = try await fixture.exchange().body
    #expect(try await read(first, upTo: 500_000) == 500_000)
    #expect(try await read(fixture.exchange().body) == origin.length)
    #expect(origin.requests == 2 && fleet.granted == 1)
    #expect(try await read(first, from: 500_000) == origin.length)
  }

  @Test("requests that wait for the head get every byte of a body that the first reader reads at once")
  func waiting() async throws {
    let origin = CountedOrigin(1_500_000, chunk: Self.chunk, statesLength: true)
    let gate = Gate()
    let fixture = try fixture(origin, head: gate)
    let readings = Task {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<6 { group.addTask { try await read(fixture.exchange().body) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
    await fixture.clock.sleepers(5)
    gate.open()
    #expect(try await readings.value == Array(repeating: origin.length, count: 6))
    #expect(origin.requests == 1)
  }

  @Test("beyond the limit of all temporary files, a body breaks off for a reader that lags behind, and for no other")
  func limit() async throws {
    let origin = CountedOrigin(3_000_000, chunk: Self.chunk, statesLength: true)
    let fixture = try fixture(origin, limit: 600_000)
    let (slow, fast) = (try await fixture.exchange().body, try await fixture.exchange().body)
    #expect(try await read(slow, upTo: 1) == Self.chunk)
    #expect(try await read(fast) == origin.length)

    let error = await #expect(throws: CacheError.self) { try await read(slow, from: Self.chunk) }
    #expect(error?.code == .diskFull && error?.reason.contains("600000") == true)
    #expect(origin.requests == 1)
  }

  @Test("readers of different pace get every byte, whatever the sizes of the chunks", arguments: 0..<12)
  func paces(seed: Int) async throws {
    var random = SplitMix(state: UInt64(seed))
    let chunk = [7, 900, 5_000, 50_000, 300_000, 700_000][seed % 6]
    let origin = CountedOrigin(min(1_500_000, chunk * 3_000), chunk: chunk, statesLength: seed.isMultiple(of: 2))
    let fixture = try fixture(origin)
    var readers: [(body: ResourceBody, position: Int)] = []
    for _ in 0..<3 { readers.append((try await fixture.exchange().body, 0)) }
    while let index = readers.indices.randomElement(using: &random) {
      let (body, start) = readers[index]
      let step = [1, chunk, 100_000, 600_000].randomElement(using: &random) ?? 1
      let end = try await read(body, from: start, upTo: start + step)
      readers[index].position = end
      guard end == origin.length else { continue }
      #expect(try await body.source.next() == nil)
      readers.remove(at: index)
    }
    #expect(origin.requests == 1)
  }
}
