#if Tool && Service
import CacheTesting
import Dispatch
import Etagere
import Foundation
import Testing

@testable import EtagereTool

@Suite("etagere-cli serve: log and clients")
struct ServeLogTests {
  @Test("a slow reader loses lines and learns their number, and no writer waits")
  func slowReader() async throws {
    let texts = Lock<[String]>([])
    let reader = DispatchSemaphore(value: 0)
    let (log, written) = (
      LogWriter(limit: 2) { data in
        reader.wait()
        texts.withLock { $0.append(String(decoding: data, as: UTF8.self)) }
      }, { @Sendable in texts.withLock { $0 } }
    )
    for number in 1...5 { log.write(Data("\(number)".utf8)) }
    for _ in 0..<3 { reader.signal() }
    try await Polling.until { written().count == 2 }
    await log.drain()
    log.write(Data("6".utf8))
    try await Polling.until { written().count == 3 }
    #expect(written() == ["1\n", "2\n", "{\"dropped\":3}\n6\n"])
  }

  @Test(
    "the client is the last address that a proxy states, without its port, and of IPv6 the network",
    arguments: [
      ("192.0.2.1", "192.0.2.1"), ("198.51.100.9, 192.0.2.1", "192.0.2.1"), ("192.0.2.1:5678", "192.0.2.1"),
      ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"), ("[2001:db8:1:2:5::6]:443", "2001:db8:1:2::/64"),
      ("::ffff:192.0.2.1", "192.0.2.1"), ("unknown", nil), ("", nil), ("192.0.2.1, ", nil),
    ])
  func client(_ field: String, _ client: String?) { #expect(ClientAddress.stated(in: field) == client) }
}
#endif
