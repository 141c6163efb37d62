import Foundation
import Testing

@testable import CacheNetworking

@Suite("The spool that sharers read from") struct TransferSpoolTests {
  private func chunk(_ byte: UInt8, _ count: Int = 10) -> Data { Data(repeating: byte, count: count) }

  @Test("up to the limit everything is kept for those who join late")
  func keepsUpToLimit() {
    var spool = TransferSpool(joinLimit: 20)
    spool.append(chunk(1), readers: 1)
    spool.append(chunk(2), readers: 1)

    #expect(spool.take(at: 0) == chunk(1))
    #expect(spool.take(at: 1) == chunk(2))

    #expect(spool.retainedBytes == 20)
    #expect(!spool.hasDropped)
  }

  @Test("beyond the limit, what everybody has read is dropped")
  func dropsBeyondLimit() {
    var spool = TransferSpool(joinLimit: 20)
    for byte: UInt8 in 1...3 { spool.append(chunk(byte), readers: 2) }

    _ = spool.take(at: 0)
    #expect(!spool.hasDropped, "the second reader has not had it")
    _ = spool.take(at: 0)

    #expect(spool.hasDropped)
    #expect(spool.retainedBytes == 20)
    #expect(spool.take(at: 1) == chunk(2))
  }

  @Test("a reader that leaves no longer holds anything back")
  func leaving() {
    var spool = TransferSpool(joinLimit: 0)
    for byte: UInt8 in 1...3 { spool.append(chunk(byte), readers: 2) }
    for position in 0..<3 { _ = spool.take(at: position) }
    #expect(spool.retainedBytes == 30)

    spool.leave(at: 0)

    #expect(spool.retainedBytes == 0)
  }

  @Test("a late reader holds the chunks that were read before it came")
  func joining() {
    var spool = TransferSpool(joinLimit: 20)
    spool.append(chunk(1), readers: 1)
    _ = spool.take(at: 0)
    spool.join()
    spool.append(chunk(2, 100), readers: 2)

    #expect(!spool.hasDropped)
    #expect(spool.take(at: 0) == chunk(1))
    #expect(spool.hasDropped)
  }

  @Test("after the end nothing that was read is kept")
  func complete() {
    var spool = TransferSpool(joinLimit: 1000)
    spool.append(chunk(1), readers: 1)
    _ = spool.take(at: 0)

    spool.isComplete = true

    #expect(spool.retainedBytes == 0)
  }

  @Test("long bodies keep their order while the front is cut off")
  func longBody() {
    var spool = TransferSpool(joinLimit: 0)
    for turn in 0..<500 {
      spool.append(Data([UInt8(turn % 251)]), readers: 1)
      if turn >= 3 { #expect(spool.take(at: turn - 3) == Data([UInt8((turn - 3) % 251)])) }
      #expect(spool.retainedBytes <= 4)
    }
    #expect(spool.end == 500)
  }
}
