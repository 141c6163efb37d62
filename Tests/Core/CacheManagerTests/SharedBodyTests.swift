import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import Testing

/// An executor that runs jobs on a queue, and records their tasks.
private final class TaskNotes: TaskExecutor {
  private let queue = DispatchQueue(label: "etagere.test.pump")
  private let seen = Lock<Set<String>>([])

  /// The number of tasks that have run on this executor.
  var tasks: Int { seen.withLock { $0.count } }

  func enqueue(_ job: consuming ExecutorJob) {
    let task = job.description
    seen.withLock { _ = $0.insert(task) }
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// A downloader with a preferred executor.
private struct HomeDownloader: Downloader {
  let base: any Downloader
  let preferredExecutor: (any TaskExecutor)?

  var id: ComponentID { base.id }

  func download(_ request: DownloadRequest) async throws(CacheError) -> DownloadResponse { try await base.download(request) }
}

@Suite("One body for many readers")
struct SharedBodyTests {
  private static let text = String(repeating: "0123456789", count: 100)

  private func fixture(_ kind: StorageKind, _ notes: TaskNotes) throws -> ManagerFixture {
    let fixture = try ManagerFixture(kind) {
      $0.maximumBodyInMemory = 2_000
      $0.downloader = $0.downloader.map { HomeDownloader(base: $0, preferredExecutor: notes) }
    }
    fixture.network.respond(to: fixture.url, with: .ok(Self.text, cacheControl: "max-age=60").chunked(by: 10))
    return fixture
  }

  @Test("one task pulls the body, whichever reader is ahead", arguments: StorageKind.allCases)
  func oneTask(_ kind: StorageKind) async throws {
    let notes = TaskNotes()
    let fixture = try fixture(kind, notes)
    let bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
    var texts = ["", ""]

    for turn in 0..<200 {
      // The readers take turns being ahead, by up to ten chunks.
      let reader = turn / 20 % 2
      guard let chunk = try await bodies[reader].source.next() else { continue }
      texts[reader] += String(decoding: chunk, as: UTF8.self)
    }
    for (reader, body) in bodies.enumerated() {
      while let chunk = try await body.source.next() { texts[reader] += String(decoding: chunk, as: UTF8.self) }
    }

    #expect(texts == [Self.text, Self.text])
    #expect(notes.tasks == 1)
    #expect(fixture.network.requests.count == 1)
  }

  @Test("if all readers leave early, no task is left waiting", arguments: StorageKind.allCases)
  func left(_ kind: StorageKind) async throws {
    weak var left: TaskNotes?
    try await {
      let notes = TaskNotes()
      left = notes
      let fixture = try fixture(kind, notes)
      let bodies = [try await fixture.exchange().body, try await fixture.exchange().body]
      for body in bodies { _ = try await body.source.next() }
      #expect(notes.tasks == 1)
      for body in bodies { body.source.cancel() }
      #expect(fixture.network.cancelledBodies == 1)
    }()
    // The task retains its executor until the task has ended.
    try await Polling.until { left == nil }
  }
}
