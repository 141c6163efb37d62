#if Service && os(Linux)
import CacheTesting
import Foundation
import HTTPTypes
import ImageCodecs
import Testing

@testable import ImageService

@Suite("Results that workers make", .timeLimit(.minutes(20)))
struct WorkerTests {
  private static func program(_ name: String) throws -> String {
    let folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    let path = folder.appending(path: name).path
    try #require(FileManager.default.isExecutableFile(atPath: path), "no program at \(path)")
    return path
  }

  private static func workers(_ program: String) throws -> CodecWorkers {
    let path = try Self.program(program)
    return try CodecWorkers(
      .init {
        ($0.count, $0.memoryLimit, $0.program) = (1, 256 << 20, path)
      })
  }

  /// The failures that a service has reported.
  private final class Reports: Sendable {
    private let errors = Lock<[CacheError]>([])
    func note(_ error: CacheError) { errors.withLock { $0.append(error) } }
    var all: [CacheError] { errors.withLock { $0 } }
  }

  @Test("a worker makes the same result as the process")
  func sameResults() async throws {
    let pool = try Self.workers("etagere-cli")
    let (remote, local) = (try ServiceFixture { $0.workers = pool }, try ServiceFixture())
    let drawing = Data("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".utf8)
    let sources: [(Data, HTTPFields)] = [
      (try DrawnImage.png(60, 40), [:]), (try DrawnImage.png(60, 40), [.cacheControl: "no-transform"]),
      (Data("not an image".utf8), [:]), (try DrawnImage.png(60, 40).dropLast(30), [:]), (drawing, [:]),
    ]
    for (index, (data, fields)) in sources.enumerated() {
      let url = "https://photos.example.com/\(index)"
      let cacheControl = fields[.cacheControl] ?? "max-age=60"
      for fixture in [remote, local] { try fixture.serve(data, at: url, cacheControl: cacheControl) }
      for operations in [
        "width=20", "width=20,format=png,dpr=3,radius=4000,blur=90", "exact=300x200,quality=50,format=jpeg",
        "gray,circle,format=png",
        "crop=10x10:attention,tint=ff000080:0.3,border=2:00ff00:3,rotate=90,flip=vertical,rect=1:1:5:5",
        "width=5000:enlarge,dpr=2", "format=avif",
      ] {
        let (made, expected) = (try await remote.get(operations, of: url), try await local.get(operations, of: url))
        #expect(made.status == expected.status && made.problem == expected.problem, "\(index) \(operations)")
        // The words of an error come from a buffer of libvips that all threads of a process share.
        guard expected.status < 400 else { continue }
        #expect(made.fields == expected.fields && made.data == expected.data, "\(index) \(operations)")
      }
    }
    #expect(pool.counters.crashes == 0)
  }

  @Test(
    "a codec that crashes gets 422, and its source is not tried again in any size for a time", arguments: ["abort", "exit"])
  func refusedSource(_ action: String) async throws {
    let code = "codecCrashed"
    let (pool, reports) = (try Self.workers("TrialWorker"), Reports())
    let fixture = try ServiceFixture {
      $0.workers = pool
      $0.onCodecFailure = { reports.note($0) }
    }
    try fixture.serve(Data(action.utf8))
    for operations in ["width=4", "width=4", "width=5"] {
      let served = try await fixture.get(operations)
      #expect(served.status == 422 && served.problem == code)
      #expect(served.response.error?.code.rawValue == code)
    }
    #expect(pool.counters.crashes == 1)
    #expect(reports.all.map(\.code.rawValue) == [code] && reports.all.first?.url == ServiceFixture.image)

    // Another image, and other bytes under the same URL, are made.
    try fixture.serve(Data("echo".utf8), at: "https://photos.example.com/dog.png")
    #expect(try await fixture.get("width=4", of: "https://photos.example.com/dog.png").status == 200)
    fixture.clock.advance(by: .seconds(120))
    try fixture.serve(Data("echo".utf8), etag: "\"2\"")
    #expect(try await fixture.get("width=4").status == 200)

    // After the time, the source is tried again.
    try fixture.serve(Data(action.utf8))
    fixture.clock.advance(by: .seconds(120))
    #expect(try await fixture.get("width=6").fields[.retryAfter] == "361")
    fixture.clock.advance(by: .seconds(600))
    #expect(try await fixture.get("width=6").problem == code)
    #expect(pool.counters.crashes == 2)
  }

  @Test(
    "a codec that needs too much time gets 504, and one that needs too much memory 422. Only that result is not tried again",
    arguments: [("timeOut", 504, "codecTimedOut"), ("failToAllocate", 422, "codecOutOfMemory")])
  func refusedResult(_ action: String, _ status: Int, _ code: String) async throws {
    let pool = try Self.workers("TrialWorker")
    let fixture = try ServiceFixture { $0.workers = pool }
    try fixture.serve(Data(action.utf8))
    for operations in ["width=4", "width=4", "width=5"] {
      let served = try await fixture.get(operations)
      #expect(served.status == status && served.problem == code, "\(operations)")
    }
    #expect(pool.counters.timeouts + pool.counters.outOfMemory == 2)
  }

  @Test("a stale result is served while the codec of its new source takes too long, if the source allows that")
  func staleResult() async throws {
    let pool = try Self.workers("TrialWorker")
    let fixture = try ServiceFixture { $0.workers = pool }
    let cacheControl = "max-age=60, stale-if-error=600"
    try fixture.serve(Data("echo".utf8), cacheControl: cacheControl)
    let first = try await fixture.get("width=4")
    #expect(first.status == 200)
    try fixture.serve(Data("timeOut".utf8), etag: "\"2\"", cacheControl: cacheControl)
    fixture.clock.advance(by: .seconds(120))
    let second = try await fixture.get("width=4")
    #expect(second.status == 200 && second.data == first.data)
    #expect(pool.counters.timeouts == 1)
  }

  @Test("a worker that a file has taken over cannot have another type of result cached", arguments: ["asSource", "asText"])
  func forgedResult(_ action: String) async throws {
    let fixture = try ServiceFixture { $0.workers = try Self.workers("TrialWorker") }
    try fixture.serve(Data(action.utf8))
    let served = try await fixture.get("width=4,format=png")
    #expect(served.status == 422 && served.problem == "codecCrashed")
  }

  @Test("refused images are forgotten at their end and beyond their number")
  func refusals() {
    let clock = ManualClock()
    let images = RefusedImages(lifetime: .seconds(10), clock: clock)
    let error = CacheError(.codecCrashed, reason: "a")
    for number in 0...RefusedImages.limit {
      images.insert(Data("\(number)".utf8), error)
      images.insert(Data("\(number)".utf8), error)
    }
    #expect(images.error(for: [Data("0".utf8)]) == nil)
    let last = Data("\(RefusedImages.limit)".utf8)
    #expect(images.error(for: [Data("x".utf8), last])?.retryAfter == .seconds(10))
    clock.advance(by: .seconds(9))
    images.insert(Data("y".utf8), error)
    clock.advance(by: .seconds(1))
    #expect(images.error(for: [last]) == nil)
    // An expired error does not hide another one.
    #expect(images.error(for: [last, Data("y".utf8)])?.retryAfter == .seconds(9))
  }
}
#endif
