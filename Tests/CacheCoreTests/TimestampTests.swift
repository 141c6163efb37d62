import CacheCore
import Testing

@Suite("Timestamps")
struct TimestampTests {
  @Test(
    "add and subtract durations, and saturate instead of trapping",
    arguments: [
      (Timestamp(seconds: 10), Duration.seconds(5), Timestamp(seconds: 15)),
      (Timestamp(seconds: 10), .seconds(-15), Timestamp(seconds: -5)),
      (.distantFuture, .nanoseconds(1), .distantFuture),
      (.distantFuture, .seconds(Int64.max), .distantFuture),
      (.distantPast, .nanoseconds(-1), .distantPast),
      (.distantPast, .seconds(Int64.min), .distantPast),
      (Timestamp(seconds: 0), .seconds(Int64.max), .distantFuture),
      (Timestamp(seconds: 0), .seconds(Int64.min), .distantPast),
      (.distantPast, .seconds(Int64.max), Timestamp(nanoseconds: -1)),
    ])
  func adding(_ time: Timestamp, _ duration: Duration, _ sum: Timestamp) {
    #expect(time + duration == sum)
  }

  @Test(
    "go back by durations, and saturate there too",
    arguments: [
      (Timestamp(seconds: 10), Duration.seconds(15), Timestamp(seconds: -5)),
      (.distantPast, .nanoseconds(1), .distantPast),
      (.distantFuture, .nanoseconds(-1), .distantFuture),
      (.distantFuture, .seconds(Int64.min), .distantFuture),
      (Timestamp(nanoseconds: -2), .seconds(Int64.max), .distantPast),
    ])
  func subtracting(_ time: Timestamp, _ duration: Duration, _ difference: Timestamp) {
    #expect(time - duration == difference)
  }

  @Test(
    "print as a date and a time",
    arguments: [
      (Timestamp(seconds: 784_111_777), "1994-11-06T08:49:37Z"),
      (Timestamp(nanoseconds: 1), "1970-01-01T00:00:00.000000001Z"),
      (Timestamp(nanoseconds: -1), "1969-12-31T23:59:59.999999999Z"),
      (.distantPast, "1677-09-21T00:12:43.145224192Z"),
      (.distantFuture, "2262-04-11T23:47:16.854775807Z"),
    ])
  func printed(_ time: Timestamp, _ text: String) {
    #expect("\(time)" == text)
  }

  @Test("tell the time between them, and saturate at 292 years")
  func between() {
    #expect(Timestamp(seconds: 10) - Timestamp(seconds: 4) == .seconds(6))
    #expect(Timestamp(seconds: 4) - Timestamp(seconds: 10) == .seconds(-6))
    #expect(Timestamp.distantFuture - .distantPast == .nanoseconds(Int64.max))
    #expect(Timestamp.distantPast - .distantFuture == .nanoseconds(Int64.min))
  }

  @Test(
    "count whole seconds, rounded down on both sides of 1970",
    arguments: [(0, 0), (1, 0), (999_999_999, 0), (1_000_000_000, 1), (-1, -1), (-1_000_000_000, -1), (-1_000_000_001, -2)])
  func seconds(_ nanoseconds: Int64, _ seconds: Int64) {
    #expect(Timestamp(nanoseconds: nanoseconds).seconds == seconds)
  }

  @Test(
    "made of too many seconds are the first or the last there is",
    arguments: [(Int64.max, Timestamp.distantFuture), (.min, .distantPast)])
  func tooManySeconds(_ seconds: Int64, _ time: Timestamp) {
    #expect(Timestamp(seconds: seconds) == time)
  }

  @Test("are ordered as time is")
  func order() {
    let sorted: [Timestamp] = [
      .distantPast, Timestamp(nanoseconds: -1), Timestamp(seconds: 0), Timestamp(seconds: 1), .distantFuture,
    ]
    #expect(sorted.shuffled().sorted() == sorted)
  }

  @Test("of the machine's clock go forward, and its uptime never back")
  func systemClock() {
    let clock = SystemClock()
    let (now, uptime) = (clock.now, clock.uptime)
    #expect(now > Timestamp(seconds: 1_700_000_000))
    #expect(clock.uptime >= uptime)
    #expect(uptime > .zero)
  }

  @Test("of the machine's clock: a sleep ends as soon as its task is cancelled", .timeLimit(.minutes(30)))
  func cancelledSleep() async {
    let sleep = Task { try await SystemClock().sleep(for: .seconds(86_400)) }
    sleep.cancel()
    await #expect(throws: CancellationError.self) { try await sleep.value }
  }

  @Test(
    "of an expiration count from where it starts, and saturate",
    arguments: [
      (Expiration.never, Timestamp.distantFuture), (.after(.seconds(5)), Timestamp(seconds: 105)),
      (.after(.seconds(-5)), Timestamp(seconds: 95)), (.after(.seconds(Int64.max)), .distantFuture),
      (.at(Timestamp(seconds: 7)), Timestamp(seconds: 7)),
    ])
  func expiration(_ expiration: Expiration, _ deadline: Timestamp) {
    #expect(expiration.deadline(from: Timestamp(seconds: 100)) == deadline)
  }

  @Test("of an answer's facts decide its freshness and its age")
  func freshness() {
    var freshness = Freshness(generatedAt: Timestamp(seconds: 100), freshUntil: Timestamp(seconds: 160))
    #expect(freshness.isFresh(at: Timestamp(seconds: 160) - .nanoseconds(1)))
    #expect(!freshness.isFresh(at: Timestamp(seconds: 160)))
    #expect(freshness.age(at: Timestamp(seconds: 130)) == .seconds(30))
    #expect(freshness.age(at: Timestamp(seconds: 70)) == .zero)
    freshness.requiresRevalidation = true
    #expect(!freshness.isFresh(at: Timestamp(seconds: 100)))
  }
}
