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

/// The program of a worker process.
package enum WorkerProgram {
  /// The variable that makes a process a worker. Its value is the limit of memory.
  private static let variable = "ETAGERE_CODEC_WORKER"
  /// The name of a worker, as the first argument of its process.
  static let name = "etagere-codec-worker"

  static var isWorker: Bool { getenv(variable) != nil && CommandLine.arguments.first == name }

  /// The variables that a worker inherits. Keys and passwords of the service are in others.
  private static let inherited = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH"]
  private static let inheritedPrefixes = ["FONTCONFIG_", "VIPS_"]

  static func environment(memoryLimit: Int) -> [String] {
    // With one pool of memory, the C library reserves less of the address space.
    ["\(variable)=\(memoryLimit)", "MALLOC_ARENA_MAX=1", "RUST_BACKTRACE=0", "SWIFT_BACKTRACE=enable=no"]
      + ProcessInfo.processInfo.environment.filter { name, _ in
        inherited.contains(name) || inheritedPrefixes.contains { name.hasPrefix($0) }
      }.map { "\($0)=\($1)" }
  }

  /// The folders that a worker can read: libraries, codecs that libvips loads when it needs them, and fonts.
  private static var readable: [String] {
    let system = [
      "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/var/cache/fontconfig", "/proc/self",
      "/sys/devices/system/cpu", "/dev/null", "/dev/urandom",
    ]
    let environment = ProcessInfo.processInfo.environment
    let stated = ["LD_LIBRARY_PATH", "FONTCONFIG_PATH", "FONTCONFIG_FILE"].compactMap { environment[$0] }
    return system + stated.flatMap { $0.split(separator: ":").map { String($0) } }
  }

  /// Runs the process as a worker if a pool has started it, and does not return then.
  ///
  /// - Parameter jobs: The kinds of jobs beside decoding.
  package static func runIfWorker(_ jobs: [any WorkerJob.Type]) {
    guard isWorker, let value = getenv(variable), let memoryLimit = Int(String(cString: value)) else { return }
    etagere_worker_close_descriptors()
    // Landlock confines the calling thread and those that it starts, such as those of libvips. The thread sanitizer has a thread
    // of its own.
    #if !TSAN
    guard etagere_worker_has_one_thread() else {
      end("'runIfWorker()' must be called on the main thread before other threads start, and needs /proc")
    }
    #endif
    let confinement = confine()
    ImageDecoder.discardLibraryMessages()
    ImageEncoder.warmUp()
    guard etagere_worker_end_with(0) == 0, etagere_worker_limit_memory(UInt64(memoryLimit)) == 0 else {
      end("the limits of a worker cannot be set: \(String(cString: strerror(errno)))")
    }
    let made = CodecWorkers.Confinement(landlock: Int(confinement.landlock), filtersSystemCalls: confinement.has_filter)
    reply(WorkerReply(result: made, residentBytes: Int(clamping: etagere_worker_resident_memory())), Data())
    let jobs = Dictionary(uniqueKeysWithValues: ([DecodeJob.self] + jobs).map { ($0.name, $0) })
    while let (name, document, source) = nextJob() {
      guard let job = jobs[name] else { exit(70) }
      run(job, document, on: source, memoryLimit)
    }
    exit(0)
  }

  /// Ends the process with the reason for the service.
  private static func end(_ reason: String) -> Never {
    let line = Data("\(reason)\n".utf8)
    _ = line.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    exit(71)
  }

  private static func confine() -> etagere_confinement {
    let paths = readable.map { strdup($0) }
    defer { for path in paths { free(path) } }
    return (paths.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { etagere_worker_confine($0.baseAddress) }
  }

  private static func run<Job: WorkerJob>(_ type: Job.Type, _ settings: Data, on source: Data, _ memoryLimit: Int) {
    guard let job = try? JSONDecoder().decode(type, from: settings) else { exit(70) }
    var document = WorkerReply<Job.Result>(residentBytes: 0)
    var data = Data()
    // Some codecs use several threads. The service ends the job at its deadline.
    etagere_worker_limit_time(UInt64(clamping: (job.timeLimit.components.seconds + 1) * Int64(HostResources.processors)))
    do throws(CacheError) {
      (document.result, data) = try job.run(on: source, memoryLimit: memoryLimit)
    } catch {
      document.failure = .init(code: code(of: error).rawValue, reason: String(error.reason.prefix(4_096)))
    }
    if etagere_worker_resident_memory() > 64 << 20 { etagere_worker_release_memory() }
    document.residentBytes = Int(clamping: etagere_worker_resident_memory())
    reply(document, data)
  }

  /// Returns the code of an error. Libraries report in their own words that they got no memory.
  private static func code(of error: CacheError) -> CacheError.Code {
    let isAboutMemory = ["out of memory", "not enough memory", "unable to allocate"].contains {
      error.reason.lowercased().contains($0)
    }
    return isAboutMemory ? .codecOutOfMemory : error.code
  }

  // MARK: Messages

  private static func nextJob() -> (name: String, document: Data, source: Data)? {
    guard let frame = receive(WorkerFrame.length).flatMap({ WorkerFrame($0, dataLimit: .max) }),
      let document = receive(frame.documentLength),
      let source = receive(frame.dataLength), let end = document.firstIndex(of: UInt8(ascii: "\n"))
    else { return nil }
    return (String(decoding: document[..<end], as: UTF8.self), document[document.index(after: end)...], source)
  }

  private static func receive(_ count: Int) -> Data? {
    var data = Data(count: count)
    var start = 0
    while start < count {
      let received = data.withUnsafeMutableBytes { read(0, $0.baseAddress?.advanced(by: start), count - start) }
      if received > 0 {
        start += received
      } else if received == 0 || errno != EINTR {
        return nil
      }
    }
    return data
  }

  private static func reply<Result>(_ reply: WorkerReply<Result>, _ data: Data) {
    guard let document = try? JSONEncoder().encode(reply) else { exit(70) }
    for part in [WorkerFrame.start(document, before: data), data] {
      var start = 0
      while start < part.count {
        let sent = part.withUnsafeBytes { write(0, $0.baseAddress?.advanced(by: start), part.count - start) }
        if sent > 0 { start += sent } else if errno != EINTR { exit(0) }
      }
    }
  }
}
#else
/// The program of a worker process, which needs Linux.
package enum WorkerProgram {
  package static func runIfWorker(_ jobs: [any WorkerJob.Type]) {}
}
#endif
