#if os(Linux)
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import ImageCodecs
import ImageWorkers
import Testing
import TrialWorker

@Suite("Worker processes", .timeLimit(.minutes(20)))
struct CodecWorkersTests {
  private let workers: CodecWorkers

  init() throws {
    workers = try CodecWorkers(
      .init {
        $0.count = 1
        $0.memoryLimit = 64 << 20
        $0.program = try? TrialProgram.path()
      })
  }

  @discardableResult
  private func run(
    _ action: TrialJob.Action, path: String = "", on source: Data = Data(), within time: Duration = .seconds(60)
  ) throws(CacheError) -> (result: String, data: Data) {
    try workers.run(TrialJob(action, path: path), on: source, until: .now + time)
  }

  @Test("a worker returns the bytes and the errors of its jobs", arguments: [0, 1, 65_536, 5_000_001])
  func results(_ count: Int) throws {
    let source = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    let (result, data) = try run(.echo, on: source)
    #expect(result == "echo" && data == source)
    let error = #expect(throws: CacheError.self) { try run(.fail, on: source) }
    #expect(error?.code == .decodingFailed && error?.reason == "PNG: the file is truncated")
    #expect(try run(.echo, on: source).data == source)
    #expect(workers.counters == CodecWorkers.Counters(starts: 1))
  }

  @Test(
    "a job that ends its worker fails with the reason, and the next job has another worker",
    arguments: [
      (TrialJob.Action.abort, CacheError.Code.codecCrashed, "SIGABRT"), (.exit, .codecCrashed, "ended"),
      (.babble, .codecCrashed, "message"), (.announce, .codecCrashed, "too long"),
      (.allocate, .codecOutOfMemory, "67108864 bytes"), (.failToAllocate, .codecOutOfMemory, "memory"),
    ])
  func ends(_ action: TrialJob.Action, _ code: CacheError.Code, _ reason: String) throws {
    let first = try run(.identify).result
    let error = try #require(throws: CacheError.self) { try run(action, on: Data(repeating: 1, count: 100_000)) }
    #expect(error.code == code && error.reason.contains(reason), "\(error)")
    #expect(try run(.identify).result != first)
    let counters = workers.counters
    #expect(counters.crashes == (code == .codecCrashed ? 1 : 0) && counters.outOfMemory == (code == .codecOutOfMemory ? 1 : 0))
  }

  @Test("workers have the stated priority, in the session of the program", arguments: CodecWorkers.Priority.allCases)
  func priority(_ priority: CodecWorkers.Priority) throws {
    let workers = try CodecWorkers(
      .init {
        ($0.count, $0.priority) = (1, priority)
        // A worker that is moved aside is ended.
        $0.patience = .seconds(3_600)
        $0.program = try? TrialProgram.path()
      })
    let id = try workers.run(TrialJob(.identify), on: Data(), until: .now + .seconds(600)).result
    /// The fields after the name: state, parent, group, session.
    func fields(of process: String) throws -> [String] {
      let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
      return text[text.index(after: try #require(text.lastIndex(of: ")")))...].split(separator: " ").map(String.init)
    }
    let (worker, own) = (try fields(of: id), try fields(of: "self"))
    #expect(worker[2] == id && worker[3] == own[3])
    #expect(worker[38] == (priority == .background ? "5" : "0"), "the policy: SCHED_IDLE or SCHED_OTHER")
    // The first worker must become ready on a busy machine. Its parent lowers it then, and the others start in the background.
    #expect(throws: CacheError.self) { try workers.run(TrialJob(.exit), on: Data(), until: .now + .seconds(600)) }
    let next = try workers.run(TrialJob(.identify), on: Data(), until: .now + .seconds(600)).result
    #expect(try next != id && fields(of: next)[38] == worker[38])
  }

  @Test("a job that takes too long is ended at its deadline", arguments: [TrialJob.Action.loop, .sleep, .trickle])
  func deadline(_ action: TrialJob.Action) throws {
    try run(.echo)
    var job = TrialJob(action)
    job.timeLimit = .seconds(1)
    // The job begins with more than half of its time, unless the machine stops for nine seconds.
    let error = try #require(throws: CacheError.self) { try workers.run(job, on: Data(), until: .now + .seconds(10)) }
    #expect(error.code == .codecTimedOut)
    #expect(workers.counters.timeouts == 1)
    #expect(try run(.echo).result == "echo")
  }

  @Test("a job that begins late is not blamed for its lack of time")
  func lateness() throws {
    try run(.echo)
    var job = TrialJob(.sleep)
    job.timeLimit = .seconds(3_600)
    let error = try #require(throws: CacheError.self) { try workers.run(job, on: Data(), until: .now + .seconds(1)) }
    #expect(error.code == .timedOut)
    #expect(workers.counters.timeouts == 0)
  }

  @Test("a failure that a worker reports counts, and its code is one that a job can have")
  func reportedFailures() throws {
    for (code, expected) in [
      ("codecTimedOut", CacheError.Code.codecTimedOut), ("codecOutOfMemory", .codecOutOfMemory), ("closed", .codecCrashed),
      ("unsupported", .unsupported),
    ] {
      #expect(throws: CacheError.self) { try run(.failWith, path: code) }
      let error = #expect(throws: CacheError.self) { try run(.failWith, path: code) }
      #expect(error?.code == expected)
    }
    #expect(workers.counters == .init(starts: 1, crashes: 2, timeouts: 2, outOfMemory: 2))
  }

  @Test("closing ends a worker that has a job")
  func closingDuringJob() async throws {
    try run(.echo)
    let task = Task.detached(executorPreference: ProcessingExecutor(width: 1)) { [workers] in
      Result { () throws(CacheError) in try workers.run(TrialJob(.sleep), on: Data(), until: .now + .seconds(1_200)).result }
    }
    // A job that has not begun yet is refused with the same error.
    workers.close()
    let result = await task.value
    let error = #expect(throws: CacheError.self) { try result.get() }
    #expect(error?.code == .closed)
  }

  @Test("the system ends a worker that uses more processor time than its job may")
  func processorTime() throws {
    // A job that is moved aside gets no processor while the machine is busy.
    let workers = try CodecWorkers(
      .init {
        ($0.count, $0.patience) = (1, .seconds(3_600))
        $0.program = try? TrialProgram.path()
      })
    var job = TrialJob(.loop)
    job.timeLimit = .zero
    let error = try #require(throws: CacheError.self) { try workers.run(job, on: Data(), until: .now + .seconds(600)) }
    #expect(error.code == .codecTimedOut && error.reason.contains("processor time"))
  }

  @Test("jobs that take long are moved aside, and the next jobs do not wait for them")
  func longJobs() async throws {
    let path = try TrialProgram.path()
    let workers = try CodecWorkers(
      .init {
        ($0.count, $0.longJobs, $0.patience, $0.program) = (1, 2, .zero, path)
      })
    let tasks = (0..<2).map { _ in
      Task.detached(executorPreference: ProcessingExecutor(width: 1)) {
        Result { () throws(CacheError) in try workers.run(TrialJob(.sleep), on: Data(), until: .now + .seconds(1_200)).result }
      }
    }
    try await Polling.until { workers.counters.longJobs == 2 }
    // Without a place beside the two, this would end at its deadline.
    #expect(try workers.run(TrialJob(.echo), on: Data(), until: .now + .seconds(600)).result == "echo")
    for task in tasks { task.cancel() }
    for task in tasks {
      let result = await task.value
      #expect(throws: CacheError.self) { try result.get() }
    }
    #expect(try workers.run(TrialJob(.echo), on: Data(), until: .now + .seconds(600)).result == "echo")
    workers.close()
  }

  @Test("a cancelled job ends its worker")
  func cancellation() async throws {
    try run(.echo)
    let begun = Gate()
    let task = Task.detached { [workers] in
      begun.letThrough()
      return Result { () throws(CacheError) in try workers.run(TrialJob(.sleep), on: Data(), until: .now + .seconds(300)).result }
    }
    await begun.pass()
    task.cancel()
    let result = await task.value
    let error = #expect(throws: CacheError.self) { try result.get() }
    #expect(error?.code == .cancelled)
    #expect(try run(.echo).result == "echo")
    #expect(workers.counters.starts == 2)
  }

  @Test("a worker that writes many messages does not stop, and its bytes are right")
  func messages() throws {
    let source = Data(repeating: 3, count: 300_000)
    #expect(try run(.complain, on: source).data == source)
  }

  @Test("a worker that the system ended while it was idle is replaced")
  func idleDeath() async throws {
    let id = try #require(Int32(try run(.identify).result))
    kill(id, SIGKILL)
    // The process has ended when its parent can see that, and its other thread too.
    try await Polling.until {
      let status = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
      let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task")
      return status?.contains(") Z") ?? true && threads?.count ?? 1 == 1
    }
    #expect(try run(.identify).result != "\(id)")
    #expect(workers.counters.crashes == 0)
  }

  @Test("a closed pool ends its workers and refuses jobs")
  func closing() throws {
    let id = try #require(Int32(try run(.identify).result))
    workers.close()
    #expect(kill(id, 0) == -1)
    let error = #expect(throws: CacheError.self) { try run(.echo) }
    #expect(error?.code == .closed)
  }

  @Test("a worker is replaced after its last job, or when it retains too much memory")
  func recycling() throws {
    let spent = try CodecWorkers(
      .init {
        ($0.count, $0.jobsPerWorker, $0.program) = (1, 2, try? TrialProgram.path())
      })
    let ids = try (0..<4).map { _ in try spent.run(TrialJob(.identify), on: Data(), until: .now + .seconds(60)).result }
    #expect(ids[0] == ids[1] && ids[1] != ids[2] && ids[2] == ids[3])
    #expect(spent.counters.recycled == 2)
    let large = try CodecWorkers(
      .init {
        ($0.count, $0.residentLimit, $0.program) = (1, 0, try? TrialProgram.path())
      })
    let others = try (0..<2).map { _ in try large.run(TrialJob(.identify), on: Data(), until: .now + .seconds(60)).result }
    #expect(others[0] != others[1])
  }

  @Test("a program that does not run as a worker is a clear error, and so is one that does not exist")
  func otherPrograms() {
    for program in ["/bin/true", "/bin/cat", "/does/not/exist"] {
      let error = #expect(throws: CacheError.self) {
        try CodecWorkers(
          .init {
            ($0.count, $0.program, $0.startTimeout) = (1, program, .seconds(1))
          })
      }
      #expect(error?.reason.contains("worker") == true, "\(program)")
    }
  }

  @Test("settings out of range are refused")
  func settings() {
    let changes: [(inout CodecWorkers.Configuration) -> Void] = [
      { $0.count = 0 }, { $0.memoryLimit = 1 }, { $0.jobsPerWorker = 0 }, { $0.residentLimit = -1 }, { $0.startTimeout = .zero },
    ]
    for change in changes {
      let error = #expect(throws: CacheError.self) { try CodecWorkers(.init(change)) }
      #expect(error?.code == .invalidConfiguration)
    }
  }

  @Test(
    "a confined worker cannot read other files, change files, use networks, start programs, or reach other processes",
    .enabled(if: (try? TrialProgram.confinement) == .complete, "the kernel has no Landlock or no filter of system calls"),
    arguments: [
      TrialJob.Action.readFile, .createFile, .overwriteFile, .removeFile, .changePermissions, .connect, .connectPair,
      .startProgram,
      .signalParent, .signalByDescriptor, .readParent, .slowParent, .stopItself, .raiseLimit,
    ])
  func confinement(_ action: TrialJob.Action) throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "etagere-worker-\(UUID())").path
    try Data("secret".utf8).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let result = try run(action, path: path).result
    #expect(["Permission denied", "Operation not permitted"].contains(result), "\(action): \(result)")
    #expect(try Data(contentsOf: URL(filePath: path)) == Data("secret".utf8))
    #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int != 0)
    #expect(!FileManager.default.fileExists(atPath: path + ".new"))
  }
}

@Suite("Decoding in worker processes", .timeLimit(.minutes(20)))
struct WorkerDecoderTests {
  private let metadata: StoredMetadata = {
    let now = Timestamp(seconds: 0)
    return StoredMetadata(
      request: HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a"),
      response: HTTPResponse(status: .ok), requestTime: now, responseTime: now, revision: .random(),
      freshness: Freshness(generatedAt: now, freshUntil: now))
  }()

  @Test("a worker decodes the same image as the process")
  func same() throws {
    let workers = try CodecWorkers(
      .init {
        ($0.count, $0.program) = (1, try? TrialProgram.path())
      })
    let gray = try #require(PixelBuffer(size: PixelSize(30, 20), channels: .gray) { $0[7] = 200 })
    let color = try #require(PixelBuffer(size: PixelSize(30, 20), channels: .rgba) { $0[7] = 200 })
    for (pixels, size) in [(gray, ImageSizing?.none), (color, .fit(10, 10))] {
      let file = try ImageEncoder.png.encode(DecodedImage(pixels))
      let decoder = ImageDecoder {
        ($0.size, $0.scale, $0.retainsOriginal) = (size, 2, true)
      }
      let (made, expected) = (
        try WorkerDecoder(decoder, in: workers).decode(file, metadata), try decoder.decode(file, metadata)
      )
      #expect(made.header == expected.header && made.size == expected.size && made.scale == 2)
      #expect(made.pixels.bytes == expected.pixels.bytes && made.original == file && made.url == expected.url)
      let cut = file.dropLast(30)
      let errors = [WorkerDecoder(decoder, in: workers) as any ResourceDecoder, decoder].map { decoder in
        #expect(throws: CacheError.self) { try decoder.decode(cut, metadata) }?.reason
      }
      #expect(errors[0] == errors[1] && errors[0] != nil)
    }
  }
}

extension CodecWorkersTests {
  @Test("a worker has no variables of the service, three descriptors and one of /proc, and limits for files and cores")
  func inventory() throws {
    setenv("ETAGERE_TEST_SECRET", "1", 1)
    let workers = try CodecWorkers(
      .init {
        ($0.count, $0.program) = (1, try? TrialProgram.path())
      })
    defer { workers.close() }
    let (text, _) = try workers.run(TrialJob(.inventory), on: Data(), until: .now + .seconds(600))
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.contains { $0.hasPrefix("ETAGERE_CODEC_WORKER=") } && !lines.contains { $0.contains("SECRET") })
    #expect(lines.contains("descriptors 0 1 2 3"))
    #expect(lines.contains("files 0 cores 0"))
  }
}

/// The program of the workers, which is in the same folder as the test bundle.
enum TrialProgram {
  enum Means { case complete, partial }

  /// The means of this kernel.
  static var confinement: Means {
    get throws {
      let path = try path()
      let workers = try CodecWorkers(
        .init {
          ($0.count, $0.program) = (1, path)
        })
      defer { workers.close() }
      return workers.confinement.landlock > 0 && workers.confinement.filtersSystemCalls ? .complete : .partial
    }
  }

  static func path() throws -> String {
    let folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    let path = folder.appending(path: "TrialWorker").path
    try #require(FileManager.default.isExecutableFile(atPath: path), "no program at \(path)")
    return path
  }
}
#endif
