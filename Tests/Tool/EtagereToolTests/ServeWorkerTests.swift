#if Tool && Service && os(Linux)
import CacheTesting
import Etagere
import Foundation
import Testing

@Suite("etagere-cli serve: codec workers", .timeLimit(.minutes(30)))
struct ServeWorkerTests {
  @Test("images are made in as many workers as the setting says, and the first line says how they are confined")
  func count() async throws {
    for count in [0, 3] {
      let service = try await RunningService("--workers", "\(count)")
      #expect(try await service.get(try await service.sign("site/a.png", "width=20")).status == 200)
      try await Polling.until { service.workers.count == count }
      #expect(try service.errors.contains { $0.hasPrefix("etagere-cli: 3 codec workers: ") } == (count == 3))
      #expect(try await service.stop() == 0)
    }
  }

  @Test("a codec that does not end costs its request and its worker, and the next requests get other workers")
  func stoppedWorkers() async throws {
    let service = try await RunningService(
      "--workers", "2", "--timeout", "2", "--admin", "127.0.0.1:0", "--refusal-time", "86400", "--access-log", "false")
    // A worker that was not ready when it was stopped, on a busy machine, is no proof. Then the next ones are stopped.
    var (width, url) = (20, "")
    try await Polling.until {
      width += 2
      _ = try await service.get(try await service.sign("site/a.png", "width=\(width)"))
      for worker in service.workers { kill(worker, SIGSTOP) }
      url = try await service.sign("site/a.png", "width=\(width + 1)")
      let failed = try await service.get(url)
      #expect(failed.status == 504)
      return String(decoding: failed.data, as: UTF8.self).contains("\"codecTimedOut\"")
    }
    // The same result is not tried again, and the worker that replaced the ended one makes the next results.
    #expect(try await service.get(url).status == 504)
    try await Polling.until {
      width += 2
      return try await service.get(try await service.sign("site/a.png", "width=\(width)")).status == 200
    }
    let metrics = String(decoding: try await service.get(service.metrics).data, as: UTF8.self)
    #expect(!metrics.contains("etagere_codec_timeouts 0") && metrics.contains("etagere_codec_crashes 0"))
    let log = try service.log
    #expect(log.contains { $0.contains("\"codecFailure\":\"codecTimedOut: ") && $0.contains("\"source\":\"site/a.png\"") })
    #expect(try await service.stop() == 0)
  }

  @Test("the process ends in time with a worker that does not", arguments: [SIGTERM, SIGINT])
  func shutdown(_ signal: Int32) async throws {
    let service = try await RunningService("--workers", "1", "--timeout", "3", "--admin", "127.0.0.1:0")
    _ = try await service.get(try await service.sign("site/a.png", "width=20"))
    let workers = service.workers
    #expect(!workers.isEmpty && workers.allSatisfy(Self.isRunning))
    for worker in workers { kill(worker, SIGSTOP) }
    let url = try await service.sign("site/a.png", "width=21")
    async let running = service.get(url)
    try await Polling.until {
      String(decoding: try await service.get(service.metrics).data, as: UTF8.self).contains("etagere_results_in_progress 1")
    }
    #expect(try await service.stop(signal) == 0)
    #expect(try await running.status == 504)
    try await Polling.until { workers.allSatisfy { !Self.isRunning($0) } }
  }

  @Test("the workers of a service that was ended end too")
  func orphans() async throws {
    let service = try await RunningService("--workers", "2")
    _ = try await service.get(try await service.sign("site/a.png", "width=20"))
    let workers = service.workers
    #expect(workers.count == 2 && workers.allSatisfy(Self.isRunning))
    _ = try await service.stop(SIGKILL)
    try await Polling.until { workers.allSatisfy { !Self.isRunning($0) } }
  }

  /// Whether a worker runs. A process that has ended has no arguments.
  private static func isRunning(_ id: Int32) -> Bool {
    (try? String(contentsOfFile: "/proc/\(id)/cmdline", encoding: .utf8))?.contains("etagere-codec-worker") ?? false
  }

  @Test(
    "settings of workers that are not valid are errors",
    arguments: [("--workers", "-1"), ("--worker-memory", "1K"), ("--worker-priority", "high")])
  func settings(_ flag: String, _ value: String) async throws {
    let fixture = try ToolFixture()
    let keys = try fixture.write(String(repeating: "01", count: 32), "keys")
    let run = try await fixture.run(
      ["serve", "--folder", "site=\(fixture.path)", "--keys-file", keys, "--listen", "127.0.0.1:0", flag, value])
    #expect(run.status == 64)
    #expect(run.errors.count == 1)
  }
}

extension RunningService {
  /// The processes that the service has started and that have not ended.
  var workers: [Int32] {
    let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return all.compactMap { Int32($0) }.filter { id in
      guard let text = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8), let end = text.lastIndex(of: ")") else {
        return false
      }
      // The fields after the name: state, parent.
      let fields = text[text.index(end, offsetBy: 2)...].split(separator: " ")
      return fields.count > 1 && fields[0] != "Z" && fields[1] == "\(processIdentifier)"
    }
  }
}
#endif
