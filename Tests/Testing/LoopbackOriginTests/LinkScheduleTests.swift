#if Origin
import Testing

@testable import LoopbackOrigin

@Suite("Link schedules")
struct LinkScheduleTests {
  private let millisecond: Int64 = 1_000_000
  private let second: Int64 = 1_000_000_000

  /// Advances the schedule to each of its times, delayed by `lateness`.
  private func run(_ schedule: inout LinkSchedule, lateness: Int64 = 0) -> [LinkSchedule.Packet] {
    var packets: [LinkSchedule.Packet] = []
    while let next = schedule.nextSlot { packets += schedule.advance(to: next + lateness) }
    return packets
  }

  @Test(
    "1.53 MB at 2 Mbit/s take 6.12 s, regardless of late timers", arguments: [0, 40_000, 3_000_000, 90_000_000] as [Int64])
  func noDrift(lateness: Int64) throws {
    // Given
    var schedule = LinkSchedule(bitsPerSecond: 2_000_000, latency: 0)
    schedule.enqueue(bytes: 1_530_000, flow: 1, at: 7 * second)

    // When
    let packets = run(&schedule, lateness: lateness)

    // Then
    #expect(packets.map(\.bytes).reduce(0, +) == 1_530_000)
    #expect(try #require(packets.last).arrival == 7 * second + 6_120_000_000)
  }

  @Test("a packet has 1460 bytes or the rest, and its slot takes bytes × 8 / rate")
  func packets() {
    var schedule = LinkSchedule(bitsPerSecond: 2_000_000, latency: 5 * millisecond)
    schedule.enqueue(bytes: 3000, flow: 1, at: 0)

    let packets = run(&schedule)

    #expect(packets.map(\.bytes) == [1460, 1460, 80])
    #expect(packets.map(\.arrival) == [10_840_000, 16_680_000, 17_000_000])
  }

  @Test("rates that do not divide a second lose no time to rounding", arguments: [3, 7, 999_983, 33_333_333, 3_000_000_001])
  func rounding(rate: Int) throws {
    var schedule = LinkSchedule(bitsPerSecond: rate, latency: 0)
    let bytes = min(rate, 3_000_000)
    schedule.enqueue(bytes: bytes, flow: 1, at: 0)

    let last = try #require(run(&schedule).last)

    #expect(last.arrival == Int64(Double(bytes) * 8e9 / Double(rate)))
  }

  @Test("flows alternate packet by packet, including a late one")
  func fairness() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680_000, latency: 0)  // one packet per millisecond
    schedule.enqueue(bytes: 1460 * 5, flow: 1, at: 0)
    schedule.enqueue(bytes: 1460 * 2, flow: 2, at: 0)
    var packets = schedule.advance(to: millisecond * 3 / 2)
    schedule.enqueue(bytes: 1460, flow: 3, at: millisecond * 3 / 2)

    packets += run(&schedule)

    #expect(packets.map(\.flow) == [1, 2, 1, 3, 2, 1, 1, 1])
    #expect(packets.map(\.arrival) == (1...8).map { $0 * millisecond })
  }

  @Test("a late packet gets no slot before its arrival")
  func lateTimer() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680_000, latency: 0)
    schedule.enqueue(bytes: 1460 * 6, flow: 1, at: 0)
    // The schedule was not advanced for 2.5 ms. Three slots have begun meanwhile, all for the first flow.
    schedule.enqueue(bytes: 1460, flow: 2, at: millisecond * 5 / 2)

    let packets = run(&schedule)

    #expect(packets.map(\.flow) == [1, 1, 1, 2, 1, 1, 1])
    #expect(packets.map(\.arrival) == (1...7).map { $0 * millisecond })
  }

  @Test("an idle link begins its next slot at once")
  func idle() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680_000, latency: 2 * millisecond)
    schedule.enqueue(bytes: 1460, flow: 1, at: 0)
    #expect(run(&schedule).map(\.arrival) == [3 * millisecond])

    schedule.enqueue(bytes: 1460, flow: 1, at: 10 * millisecond)

    #expect(run(&schedule).map(\.arrival) == [13 * millisecond])
    #expect(schedule.nextSlot == nil)
  }

  @Test("without a rate, bytes are sent at once in one packet and arrive after the latency", arguments: [nil, 0, -1])
  func unlimited(rate: Int?) {
    var schedule = LinkSchedule(bitsPerSecond: rate, latency: 5 * millisecond)
    schedule.enqueue(bytes: 1_000_000, flow: 1, at: second)
    schedule.enqueue(bytes: 10, flow: 2, at: second)

    let packets = schedule.advance(to: second)

    #expect(
      packets == [
        .init(flow: 1, bytes: 1_000_000, arrival: second + 5 * millisecond),
        .init(flow: 2, bytes: 10, arrival: second + 5 * millisecond),
      ])
  }

  @Test("a packet of zero bytes keeps its position and takes no time")
  func marks() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680_000, latency: 0)
    schedule.enqueue(bytes: 2920, flow: 1, at: 0)
    schedule.enqueue(bytes: 0, flow: 1, at: 0)

    let packets = run(&schedule)

    #expect(packets.map(\.bytes) == [1460, 1460, 0])
    #expect(packets.map(\.arrival) == [millisecond, 2 * millisecond, 2 * millisecond])
  }

  @Test("the slots of a removed flow go to the others")
  func removal() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680_000, latency: 0)
    schedule.enqueue(bytes: 1460 * 100, flow: 1, at: 0)
    schedule.enqueue(bytes: 1460 * 2, flow: 2, at: 0)
    let begun = schedule.advance(to: 0)

    schedule.remove(flow: 1)

    #expect(begun.map(\.flow) == [1])
    #expect(run(&schedule).map(\.arrival) == [2 * millisecond, 3 * millisecond])
  }

  @Test("a faster link takes effect within one of its packets, and no packet overtakes another")
  func faster() {
    var schedule = LinkSchedule(bitsPerSecond: 11_680, latency: 50 * millisecond)  // one packet per second
    schedule.enqueue(bytes: 1460 * 3, flow: 1, at: 0)
    let begun = schedule.advance(to: 0)

    schedule.change(bitsPerSecond: 11_680_000, latency: 0, at: 10 * millisecond)

    #expect(begun.map(\.arrival) == [1050 * millisecond])
    #expect(schedule.nextSlot == 11 * millisecond)
    #expect(run(&schedule).map(\.arrival) == [1050 * millisecond, 1050 * millisecond])
  }

  @Test("a thousand flows share the link equally, to the packet")
  func manyFlows() {
    var schedule = LinkSchedule(bitsPerSecond: 1_000_000_000, latency: 0)
    for flow in 0..<1000 { schedule.enqueue(bytes: 1460 * 3, flow: flow, at: 0) }

    let packets = run(&schedule)

    #expect(packets.map(\.flow) == (0..<3000).map { $0 % 1000 })
  }
}
#endif
