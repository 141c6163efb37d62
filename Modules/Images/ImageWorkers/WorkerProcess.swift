#if os(Linux)
internal import CEtagereConfinement
internal import CacheCore
internal import ImageCodecs

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A worker process, as the pool sees it. One thread at a time uses it.
struct WorkerProcess: Sendable {
  let id: pid_t
  private let channel: Int32
  private let messages: Int32
  private var isReady = false
  /// Whether the standard error of the worker is open.
  private var hasMessages = true
  /// The end of what the worker has written to its standard error.
  private var lastMessage: [UInt8] = []
  /// The number of jobs that were sent to the worker.
  private(set) var jobs = 0

  /// The time between two checks of the deadline and of the cancellation.
  private static let interval: Int32 = 20
  /// The time that a cancelled job has to end, because the start of another worker takes longer than most jobs.
  private static let grace = Duration.seconds(1)

  private init(id: pid_t, channel: Int32, messages: Int32) {
    (self.id, self.channel, self.messages) = (id, channel, messages)
  }

  // MARK: Start and end

  /// Starts a worker. It is not ready yet.
  ///
  /// - Parameter inBackground: Whether it starts in the background.
  static func start(_ configuration: CodecWorkers.Configuration, inBackground: Bool) throws(CacheError) -> WorkerProcess {
    // This path is that of the running program, also after the file was replaced.
    let path = configuration.program ?? "/proc/self/exe"
    let environment = WorkerProgram.environment(memoryLimit: configuration.memoryLimit)
    var (id, channel, messages) = (pid_t(0), Int32(-1), Int32(-1))
    let status = withCStrings([WorkerProgram.name]) { arguments in
      withCStrings(environment) { environment in
        etagere_worker_start(path, arguments, environment, inBackground, &id, &channel, &messages)
      }
    }
    guard status == 0 else {
      let reason = String(cString: strerror(status))
      throw CacheError(.overloaded, reason: "a codec worker cannot be started: \(reason)", errno: status)
    }
    return WorkerProcess(id: id, channel: channel, messages: messages)
  }

  /// Whether an idle worker still runs, and has sent nothing that no job asked for.
  var isIdle: Bool {
    var polled = pollfd(fd: channel, events: isReady ? Int16(POLLIN) : 0, revents: 0)
    return poll(&polled, 1, 0) == 0
  }

  /// The end of a worker.
  struct Death {
    /// The signal that ended it, or 0.
    var signal: Int32 = 0
    /// The last line of its standard error.
    var message = ""
    /// Whether it got no more memory. Libraries then end their process with a message, and so does a worker that has little left.
    /// The system ends a process with SIGKILL if the machine has none.
    var isOutOfMemory = false
  }

  /// Begins to end the worker. ``end()`` waits for its end.
  func kill() { _ = etagere_worker_kill(id) }

  /// Ends the worker if it still runs, and releases its descriptors. The value must not be used again.
  mutating func end() -> Death {
    var (status, death) = (Int32(0), Death())
    // A process that closed its channel is ending, in most cases.
    var ended = waitpid(id, &status, WNOHANG)
    for _ in 0..<50 where ended == 0 && hasClosedChannel {
      usleep(1_000)
      ended = waitpid(id, &status, WNOHANG)
    }
    let endsByItself = ended == id
    if ended == 0 {
      kill()
      repeat { ended = waitpid(id, &status, 0) } while ended == -1 && errno == EINTR
    }
    if ended == id { death.signal = status & 0x7F }
    readMessages()
    let messages = String(decoding: lastMessage, as: UTF8.self)
    let lines = messages.split(whereSeparator: \.isNewline)
    death.message = String((lines.last { !$0.allSatisfy(\.isWhitespace) } ?? "").suffix(300))
    let signs = ["failed to allocate", "memory allocation of", "bad_alloc", "out of memory", "cannot allocate"]
    death.isOutOfMemory = endsByItself && (death.signal == SIGKILL || signs.contains { messages.lowercased().contains($0) })
    close(channel)
    close(self.messages)
    return death
  }

  private var hasClosedChannel: Bool {
    var polled = pollfd(fd: channel, events: 0, revents: 0)
    return poll(&polled, 1, 0) > 0
  }

  // MARK: Jobs

  /// The processor time that a worker has used, and the time that it has waited for a processor.
  struct ProcessorTimes {
    var used, waited: Duration

    /// Whether a worker had no processor for most of the time since earlier times.
    func isStarved(since earlier: ProcessorTimes, for time: Duration) -> Bool {
      used - earlier.used < time / 4 && waited - earlier.waited >= time / 2
    }
  }

  /// Moves the worker to the background.
  func runInBackground() { etagere_worker_run_in_background(id) }

  var processorTimes: ProcessorTimes {
    ProcessorTimes(
      used: .nanoseconds(Int64(clamping: etagere_worker_processor_time(id))),
      waited: .nanoseconds(Int64(clamping: etagere_worker_waiting_time(id))))
  }

  /// Waits until the worker is ready for a job.
  mutating func prepare(until deadline: SuspendingClock.Instant) throws(WorkerFailure) {
    guard !isReady else { return }
    do throws(WorkerFailure) {
      _ = try awaitReady(until: deadline)
    } catch .deadline {
      throw .notReady
    }
  }

  /// Waits until the worker has confined itself.
  mutating func awaitReady(until deadline: SuspendingClock.Instant) throws(WorkerFailure) -> CodecWorkers.Confinement {
    let reply: WorkerReply<CodecWorkers.Confinement> = try receive(upTo: 0, until: deadline).0
    guard let confinement = reply.result else { throw .violation("its first message is not the one of a worker") }
    isReady = true
    return confinement
  }

  /// Sends a job and returns the reply.
  ///
  /// - Parameters:
  ///   - patience: The time after which `moveAside` is called, repeatedly until it returns `true`. The worker then gets the
  ///     lowest priority.
  mutating func run<Job: WorkerJob>(
    _ job: Job, on source: Data, until deadline: SuspendingClock.Instant, patience: Duration, moveAside: () -> Bool
  ) throws(WorkerFailure) -> Reply<Job> {
    jobs += 1
    lastMessage = []
    guard let settings = try? JSONEncoder().encode(job), settings.count < WorkerFrame.documentLimit - 64 else {
      throw .tooManySettings
    }
    do throws(WorkerFailure) {
      // A worker that takes no bytes has not begun, so its image is not the reason.
      let end = min(deadline, .now + .seconds(5))
      try deliver(WorkerFrame.start(Data("\(Job.name)\n".utf8) + settings, before: source), until: end)
      try deliver(source, until: end)
    } catch .deadline {
      throw .notReady
    }
    do throws(WorkerFailure) {
      try wait(for: POLLIN, until: min(deadline, .now + patience))
    } catch .deadline where .now < deadline {
      try awaitReply(until: deadline, moveAside: moveAside)
    }
    let (reply, data): (WorkerReply<Job.Result>, Data) = try receive(upTo: job.resultLimit, until: deadline)
    return Reply(document: reply, data: data)
  }

  /// Waits for the reply to a job that takes long.
  private mutating func awaitReply(until deadline: SuspendingClock.Instant, moveAside: () -> Bool) throws(WorkerFailure) {
    while !moveAside() {
      do throws(WorkerFailure) {
        return try wait(for: POLLIN, until: min(deadline, .now + .milliseconds(200)))
      } catch .deadline where .now < deadline {
        continue
      }
    }
    etagere_worker_lower_priority(id)
    try wait(for: POLLIN, until: deadline)
  }

  struct Reply<Job: WorkerJob> {
    fileprivate let document: WorkerReply<Job.Result>
    fileprivate let data: Data

    var residentBytes: Int { document.residentBytes }
    var isFailure: Bool { document.result == nil }

    func content() throws(CacheError) -> (Job.Result, Data) {
      if let result = document.result { return (result, data) }
      guard let failure = document.failure, let code = Self.codes[failure.code] else {
        throw CacheError(.codecCrashed, reason: "the codec crashed: it sent no result")
      }
      throw CacheError(code, reason: failure.reason)
    }

    /// The codes of the errors that a job can have. Others have a meaning for the service.
    private static var codes: [String: CacheError.Code] {
      let codes: [CacheError.Code] = [
        .decodingFailed, .encodingFailed, .imageLimitExceeded, .unsupported, .invalidConfiguration, .codecTimedOut,
        .codecOutOfMemory,
      ]
      return Dictionary(uniqueKeysWithValues: codes.map { ($0.rawValue, $0) })
    }
  }

  private mutating func deliver(_ data: Data, until deadline: SuspendingClock.Instant) throws(WorkerFailure) {
    var start = 0
    while start < data.count {
      if .now >= deadline { throw .deadline }
      let sent = data.withUnsafeBytes { bytes in
        send(channel, bytes.baseAddress?.advanced(by: start), bytes.count - start, Int32(MSG_NOSIGNAL))
      }
      if sent >= 0 {
        start += sent
      } else if errno == EAGAIN {
        try wait(for: POLLOUT, until: deadline)
      } else if errno != EINTR {
        throw .death
      }
    }
  }

  private mutating func receive<Result: Codable & Sendable>(
    upTo limit: Int, until deadline: SuspendingClock.Instant
  ) throws(WorkerFailure) -> (WorkerReply<Result>, Data) {
    guard let frame = WorkerFrame(try receive(WorkerFrame.length, until: deadline), dataLimit: limit) else {
      throw .violation("it sent a message that is too long")
    }
    let document = try receive(frame.documentLength, until: deadline)
    guard let reply = try? JSONDecoder().decode(WorkerReply<Result>.self, from: document) else {
      throw .violation("it sent a message that is not valid")
    }
    return (reply, try receive(frame.dataLength, until: deadline))
  }

  private mutating func receive(_ count: Int, until deadline: SuspendingClock.Instant) throws(WorkerFailure) -> Data {
    var data = Data(count: count)
    var start = 0
    while start < count {
      if .now >= deadline { throw .deadline }
      let received = data.withUnsafeMutableBytes { bytes in
        recv(channel, bytes.baseAddress?.advanced(by: start), count - start, 0)
      }
      if received > 0 {
        start += received
      } else if received < 0, errno == EAGAIN {
        try wait(for: POLLIN, until: deadline)
      } else if received == 0 || errno != EINTR {
        throw .death
      }
    }
    return data
  }

  /// Waits for the channel. The standard error of the worker is read meanwhile: a worker whose messages are not read stops.
  private mutating func wait(for event: Int32, until deadline: SuspendingClock.Instant) throws(WorkerFailure) {
    var cancelled: SuspendingClock.Instant?
    while true {
      var polled = (
        pollfd(fd: channel, events: Int16(event), revents: 0),
        pollfd(fd: hasMessages ? messages : -1, events: Int16(POLLIN), revents: 0)
      )
      let count = withUnsafeMutableBytes(of: &polled) { bytes in
        bytes.withMemoryRebound(to: pollfd.self) { poll($0.baseAddress, 2, Self.interval) }
      }
      if polled.1.revents != 0 { readMessages() }
      // Before the event: a worker could send one byte at a time.
      let now = SuspendingClock.now
      if now >= deadline { throw .deadline }
      if count > 0, polled.0.revents != 0 { return }
      guard Task.isCancelled else { continue }
      if now >= (cancelled ?? now) + Self.grace { throw .cancelled }
      cancelled = cancelled ?? now
    }
  }

  private mutating func readMessages() {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    // A worker can write faster than this reads.
    for _ in 0..<16 {
      let count = read(messages, &buffer, buffer.count)
      if count == 0 { hasMessages = false }
      guard count > 0 else { return }
      lastMessage = (lastMessage + buffer[..<count]).suffix(2_048)
    }
  }
}

/// The reason why a worker did not complete a job.
enum WorkerFailure: Error {
  /// The deadline has passed.
  case deadline
  /// The deadline had passed before the worker was ready.
  case notReady
  /// The task was cancelled.
  case cancelled
  /// The process has ended.
  case death
  /// The worker has sent something else than a reply.
  case violation(String)
  /// The settings of the job are too long.
  case tooManySettings

  /// Returns the reason in words.
  func reason(_ death: WorkerProcess.Death) -> String {
    switch self {
    case .deadline, .notReady: return "it was not ready in time"
    case .cancelled: return "cancelled"
    case .violation(let reason): return reason
    case .tooManySettings: return "the job has too many settings"
    case .death:
      let signal = death.signal == 0 ? "it has ended" : "it was ended by \(Self.names[death.signal] ?? "signal \(death.signal)")"
      return death.message.isEmpty ? signal : "\(signal): \(death.message)"
    }
  }

  /// Returns the error of the job.
  func error(_ death: WorkerProcess.Death, _ configuration: CodecWorkers.Configuration) -> CacheError {
    switch self {
    case .cancelled: return .cancelled
    case .tooManySettings: return CacheError(.imageLimitExceeded, reason: reason(death))
    case .notReady: return CacheError(.timedOut, reason: "no codec worker was ready within the time limit")
    case .deadline: return CacheError(.codecTimedOut, reason: "the codec exceeded its time and was ended")
    case .death where death.signal == SIGXCPU:
      return CacheError(.codecTimedOut, reason: "the codec exceeded its processor time and was ended")
    case .death where death.signal == SIGKILL:
      return CacheError(
        .codecOutOfMemory, reason: "the system ended the codec, perhaps because the machine has no memory left")
    case .death where death.isOutOfMemory:
      return CacheError(
        .codecOutOfMemory, reason: "the codec needs more memory than its limit of \(configuration.memoryLimit) bytes")
    case .death, .violation: return CacheError(.codecCrashed, reason: "the codec crashed: \(reason(death))")
    }
  }

  private static let names: [Int32: String] = [
    SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGILL: "SIGILL", SIGKILL: "SIGKILL", SIGSEGV: "SIGSEGV",
    SIGSYS: "SIGSYS", SIGTRAP: "SIGTRAP", SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ",
  ]
}

/// Calls `body` with strings as C has them, ended by a null pointer.
private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  var pointers: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  return pointers.withUnsafeMutableBufferPointer { buffer in
    guard let start = buffer.baseAddress else { preconditionFailure("the buffer has at least the null pointer") }
    return body(UnsafePointer(start))
  }
}
#endif
