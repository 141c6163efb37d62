import CacheCore
import HTTPTypes
import Testing

@Suite("Content-Range")
struct ContentRangeTests {
  @Test(
    "a valid value has positions and a complete length, or none if the server does not know it",
    arguments: [
      ("bytes 0-9/100", 0..<10, 100), ("bytes 99-99/100", 99..<100, 100), ("Bytes 0-0/1", 0..<1, 1),
      ("BYTES 007-010/0100", 7..<11, 100), ("bytes 5-9/*", 5..<10, nil),
      ("bytes 0-9223372036854775806/9223372036854775807", 0..<Int64.max, .max),
      ("bytes 0-9223372036854775806/*", 0..<Int64.max, nil),
    ] as [(String, Range<Int64>, Int64?)])
  func valid(_ value: String, _ bytes: Range<Int64>, _ completeLength: Int64?) throws {
    let range = try #require(ContentRange(value))
    #expect(range.bytes == bytes)
    #expect(range.completeLength == completeLength)
    #expect(range.length == bytes.upperBound - bytes.lowerBound)
    #expect(ContentRange(range.fieldValue) == range)
  }

  @Test(
    "a value outside the grammar, for other units, or with inconsistent or too large numbers, is no range",
    arguments: [
      "", "bytes", "bytes ", "items 0-9/100", "bytes=0-9/100", "bytes 0-9", "bytes 0-9/", "bytes 0-/100", "bytes -9/100",
      "bytes 0/100", "bytes */100", "bytes */*", "bytes 0-9/**", "bytes 0-9/100/100", "bytes 0-9-9/100",
      "bytes 0-9/100, bytes 0-9/100",
      "bytes  0-9/100", " bytes 0-9/100", "bytes\t0-9/100", "bytes 0 -9/100", "bytes 0- 9/100", "bytes 0-9 /100",
      "bytes 0-9/ 100",
      "bytes 0-9/100 ", "bytes +0-9/100", "bytes 0-+9/100", "bytes 0-9/+100", "bytes -0-9/100", "bytes 0x0-9/100",
      "bytes 0-\u{669}/100", "bytes 0-9/1e2", "bytes 9-0/100", "bytes 0-100/100", "bytes 100-100/100", "bytes 0-0/0",
      "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775807/9223372036854775808", "bytes 0-9/9223372036854775808",
      "bytes 0-9223372036854775808/*", "bytes 9223372036854775808-9223372036854775809/*",
    ])
  func invalid(_ value: String) {
    #expect(ContentRange(value) == nil)
  }

  @Test("equal lines of a field are one range, and different ones are none")
  func lines() {
    func range(_ values: String...) -> ContentRange? {
      ContentRange(HTTPFields(values.map { HTTPField(name: .contentRange, value: $0) }))
    }
    #expect(range() == nil)
    #expect(range(" bytes 0-9/100 ") == ContentRange(0..<10, of: 100))
    #expect(range("bytes 0-9/100", "bytes 0-9/100") == ContentRange(0..<10, of: 100))
    #expect(range("bytes 0-9/100", "bytes 0-9/*") == nil)
    #expect(range("bytes 0-9/100", "x") == nil)
  }
}
