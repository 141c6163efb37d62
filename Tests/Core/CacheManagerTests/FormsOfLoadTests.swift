import CacheCore
import CacheManager
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import MemoryStore
import Synchronization
import Testing

/// One form of a load, with its result as text.
struct LoadForm: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var load: @Sendable (ResourceManager, URL, RequestOptions) async throws -> Resource<Data>

  static let all = [
    LoadForm(testDescription: "async") { manager, url, options in try await manager.load(url, options: options) },
    LoadForm(testDescription: "event stream") { manager, url, options in
      var last: Resource<Data>?
      for try await event in manager.events(for: url, options: options) {
        if case .final(let resource) = event { last = resource }
      }
      return try #require(last)
    },
    LoadForm(testDescription: "callback") { manager, url, options in
      try await withCheckedThrowingContinuation { continuation in
        manager.load(url, options: options) { continuation.resume(with: $0) }
      }
    },
  ]
}

@Suite("The three forms of a load")
struct FormsOfLoadTests {
  @Test("all forms agree on values, sources and validation", arguments: LoadForm.all)
  func agreement(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("a", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"),
      .ok("b", etag: "\"2\""))
    var seen: [String] = []
    func load() async throws {
      let resource = try await form.load(fixture.manager, fixture.url, RequestOptions())
      seen.append("\(resource.text) \(resource.source) \(resource.validation) \(resource.age)")
    }

    try await load()
    fixture.clock.advance(by: .seconds(30))
    try await load()
    fixture.restart()
    try await load()
    fixture.clock.advance(by: .seconds(60))
    try await load()
    fixture.clock.advance(by: .seconds(60))
    try await load()

    #expect(
      seen == [
        "a network notAttempted 0.0 seconds", "a memory notAttempted 30.0 seconds", "a disk notAttempted 30.0 seconds",
        "a revalidated notModified 0.0 seconds",
        "b network modified 0.0 seconds",
      ])
    try fixture.network.verify()
  }

  @Test("all forms agree on errors", arguments: LoadForm.all)
  func errors(_ form: LoadForm) async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .failure(.hostNotFound), .response(.notFound))

    for expected in [CacheError.Code.hostNotFound, .unacceptableStatus] {
      let error = await #expect(throws: CacheError.self) {
        _ = try await form.load(fixture.manager, fixture.url, RequestOptions())
      }
      #expect(error?.code == expected && error?.url == fixture.url.absoluteString)
    }
  }

  @Test("progress arrives in order, ends at the total, and has no total if the length is unknown", arguments: [true, false])
  func progress(lengthIsTold: Bool) async throws {
    let fixture = try ManagerFixture()
    let response = ScriptedResponse.ok(Data(count: 1_000)).chunked(by: 300)
    fixture.network.respond(to: fixture.url, with: lengthIsTold ? response : response.withoutLength())

    var reports: [LoadProgress] = []
    for try await event in fixture.manager.events(for: fixture.url) {
      if case .progress(let progress) = event { reports.append(progress) }
    }

    #expect(reports.map(\.received) == reports.map(\.received).sorted())
    #expect(reports.last?.received == 1_000)
    #expect(reports.allSatisfy { $0.expected == (lengthIsTold ? 1_000 : nil) })
    #expect(reports.last?.fraction == (lengthIsTold ? 1 : nil))
  }

  @Test("callbacks run on the requested queue, with progress first and one completion last")
  func callbackQueue() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 1_000)).chunked(by: 100))
    let queue = DispatchQueue(label: "callbacks")
    let mark = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: mark, value: true)
    let log = CallLog()
    let options = RequestOptions { $0.callbackQueue = .dispatch(queue) }

    await withCheckedContinuation { continuation in
      fixture.manager.load(
        fixture.url, options: options,
        progress: { progress in
          log.append(DispatchQueue.getSpecific(key: mark) == true ? "\(progress.received)" : "elsewhere")
        },
        completion: { _ in
          log.append(DispatchQueue.getSpecific(key: mark) == true ? "end" : "elsewhere")
          continuation.resume()
        })
    }

    // Reports that the load makes faster than the queue takes them are merged.
    let reports = log.lines.dropLast().compactMap { Int($0) }
    #expect(log.lines.last == "end" && log.lines.count == reports.count + 1)
    #expect(reports.last == 1_000 && reports == reports.sorted() && reports.allSatisfy { $0 % 100 == 0 })
  }

  @Test("a callback of a hit in memory on the immediate queue is called before the call returns")
  func synchronousHit() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("bytes", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    let outcomes = Outcomes()

    fixture.manager.load(fixture.url) { outcomes.append($0) }

    #expect(outcomes.all.map { try? $0.get().source } == [.memory])
    #expect(fixture.manager.cachedInMemory(ResourceRequest(fixture.url), as: .bytes)?.text == "bytes")
  }

  @Test("an event stream sends no request until it is iterated, and leaving it stops the transfer")
  func lazyStream() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok(Data(count: 1_000)).chunked(by: 100).bodyHeld(by: gate))
    let events = fixture.manager.events(for: fixture.url)
    #expect(fixture.network.requests.isEmpty)

    let consumer = Task {
      for try await _ in events {}
    }
    await gate.arrived()
    consumer.cancel()
    let result = await consumer.result
    gate.open()
    await fixture.manager.close()

    #expect(result.isCancellation)
    #expect(fixture.network.cancelledBodies == 1)
  }
}

@Suite("Values made from bytes")
struct DerivedValueTests {
  @Test("a value is made once for many waiters, and cached in memory under its transform")
  func madeOnce() async throws {
    let fixture = try ManagerFixture()
    let gate = Gate()
    fixture.network.respond(to: fixture.url, with: .ok("abc", cacheControl: "max-age=60").held(by: gate))
    let made = Counter()
    let form = ResourceTransform<String>.counting(made)

    let values = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 { group.addTask { try await fixture.manager.load(ResourceRequest(fixture.url), as: form).value } }
      await gate.arrived()
      try await Polling.until { fixture.observer.joins >= 19 }
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let hit = try await fixture.manager.load(ResourceRequest(fixture.url), as: form)

    #expect(values.allSatisfy { $0 == "ABC" } && values.count == 20)
    #expect(hit.source == .memory && hit.value == "ABC")
    #expect(fixture.network.requests.count == 1)
    #expect(made.value == 1)
  }

  @Test("a 304 keeps the values that were made from the body, and a changed body makes each of them a miss")
  func tiedToTheBody() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(
      to: fixture.url, with: .ok("one", etag: "\"1\""), .notModified(), .ok("two", etag: "\"2\""))
    let made = Counter()
    let form = ResourceTransform<String>.counting(made)

    let values = [
      try await fixture.manager.load(ResourceRequest(fixture.url), as: form).value,
      try await fixture.manager.load(ResourceRequest(fixture.url), as: form).value,
    ]
    #expect(values == ["ONE", "ONE"] && made.value == 1)
    #expect(try await fixture.manager.load(ResourceRequest(fixture.url), as: form).value == "TWO")
    #expect(made.value == 2)
  }

  @Test("a value is made from the stored original, without the network")
  func fromStoredOriginal() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abc", cacheControl: "max-age=60"))
    _ = try await fixture.manager.load(fixture.url)
    fixture.restart()

    let value = try await fixture.manager.load(ResourceRequest(fixture.url), as: .counting(Counter()))

    #expect(value.value == "ABC" && value.source == .disk)
    try fixture.network.verify()
  }

  @Test("bytes that cannot be decoded are an error with the decoder's reason, and stay cached as bytes")
  func undecodable() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abc", cacheControl: "max-age=60"))
    let form = ResourceTransform<Int>(id: "int", cost: { _ in 8 }) { _, _ throws(CacheError) in
      throw CacheError(.decodingFailed, reason: "not a number")
    }

    let error = await #expect(throws: CacheError.self) {
      _ = try await fixture.manager.load(ResourceRequest(fixture.url), as: form)
    }

    #expect(error?.code == .decodingFailed && error?.url == fixture.url.absoluteString)
    #expect(try await fixture.manager.load(fixture.url).source == .memory)
  }

  @Test("processors are applied in order, and their parameters are part of the key")
  func processors() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abc", cacheControl: "max-age=60"))
    func value(_ suffixes: String...) async throws -> Resource<String> {
      let form = ResourceTransform(decoder: TextDecoder(), processors: suffixes.map { Suffix(text: $0) })
      return try await fixture.manager.load(ResourceRequest(fixture.url), as: form)
    }

    #expect(try await value("1", "2").value == "abc12")
    #expect(try await value("2", "1").value == "abc21")
    let forms = Set([try await value("1", "2"), try await value("2", "1"), try await value("1")].map(\.key.transform))
    #expect(forms.count == 3)
    #expect(forms.allSatisfy { $0.hasPrefix("TextDecoder#4:text|Suffix#") })
  }

  @Test("values are made on the requested executor")
  func executor() async throws {
    let fixture = try ManagerFixture()
    fixture.network.respond(to: fixture.url, with: .ok("abc"))
    let executor = CountingExecutor()
    let request = ResourceRequest(fixture.url, options: RequestOptions { $0.executor = executor })

    #expect(try await fixture.manager.load(request, as: .counting(Counter())).value == "ABC")
    #expect(executor.jobs.value > 0)
  }
}

final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func increment() { count.add(1, ordering: .relaxed) }
}

extension ResourceTransform where Value == String {
  /// A transform to upper case that counts how often it makes a value.
  static func counting(_ counter: Counter) -> ResourceTransform<String> {
    ResourceTransform(id: "upper", cost: { $0.utf8.count }) { body, _ throws(CacheError) in
      counter.increment()
      return String(decoding: try await body.collect(), as: UTF8.self).uppercased()
    }
  }
}

struct TextDecoder: ResourceDecoder {
  var id: ComponentID { ComponentID(Self.self, parameters: "text") }

  func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String { String(decoding: data, as: UTF8.self) }

  func cost(of value: String) -> Int { value.utf8.count }
}

struct Suffix: ResourceProcessor {
  var text: String
  var id: ComponentID { ComponentID(Self.self, parameters: "suffix(\(text))") }

  func process(_ value: String, _ metadata: StoredMetadata) throws(CacheError) -> String { value + text }
}

final class CountingExecutor: TaskExecutor {
  let jobs = Counter()
  private let queue = DispatchQueue(label: "decoding")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.increment()
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// The recorded calls, in order.
final class CallLog: Sendable {
  private let log = Lock<[String]>([])

  var lines: [String] { log.withLock { $0 } }

  func append(_ line: String) { log.withLock { $0.append(line) } }
}
