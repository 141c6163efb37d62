import CacheTesting
import Testing

@Suite("Recorded traces")
struct TraceReadingTests {
  private struct Line: Equatable {
    let object: String
    let size: Int
  }

  /// Returns the lines that were read, and the error.
  private func read(_ text: String) -> (lines: [Line], error: Trace.LineError?) { read(Array(text.utf8)) }

  private func read(_ bytes: [UInt8]) -> (lines: [Line], error: Trace.LineError?) {
    var lines: [Line] = []
    let error: Trace.LineError? = bytes.withUnsafeBytes { bytes in
      do throws(Trace.LineError) {
        try Trace.read(bytes) { lines.append(Line(object: $0, size: $1)) }
        return nil
      } catch {
        return error
      }
    }
    return (lines, error)
  }

  @Test(
    "lines can have any line ending",
    arguments: ["1,a,10\n2.5,b c,0\n", "1,a,10\r\n2.5,b c,0\r\n", "1,a,10\n2.5,b c,0", " 1 ,\ta , 10\r\n -3e2, b c,0 "])
  func lines(_ text: String) {
    let (lines, error) = read(text)
    #expect(error == nil)
    #expect(lines == [Line(object: "a", size: 10), Line(object: "b c", size: 0)])
  }

  @Test("lines can be read with their numbers and times, until the reader throws")
  func times() {
    var lines: [Trace.Line] = []
    let error: Trace.LineError? = Array("-1.5,a,10\n2e3,b,0\n3,c,1\n".utf8).withUnsafeBytes { bytes in
      do throws(Trace.LineError) {
        try Trace.readLines(bytes) { line throws(Trace.LineError) in
          if line.object == "c" { throw Trace.LineError(line: line.number, reason: "too early") }
          lines.append(line)
        }
        return nil
      } catch {
        return error
      }
    }
    #expect(lines.map(\.number) == [1, 2])
    #expect(lines.map(\.time) == [-1.5, 2_000])
    #expect(lines.map(\.object) == ["a", "b"])
    #expect(error == Trace.LineError(line: 3, reason: "too early"))
  }

  @Test("an empty trace has no requests")
  func empty() {
    let (lines, error) = read("")
    #expect(lines.isEmpty && error == nil)
  }

  @Test(
    "reading stops at the first malformed line with its number and the reason",
    arguments: [
      ("", "1 fields, not time,object,size"), ("\r", "1 fields, not time,object,size"),
      ("# a remark", "1 fields, not time,object,size"),
      ("1,a", "2 fields, not time,object,size"), ("1,a,b,3", "4 fields, not time,object,size"),
      ("noon,a,1", "the time 'noon' is not a number"), (",a,1", "the time '' is not a number"),
      ("1,,1", "the object has no name"),
      ("1, \t,1", "the object has no name"), ("1,a,", "the size '' is not a number of bytes"),
      ("1,a,-1", "the size '-1' is not a number of bytes"), ("1,a,1.5", "the size '1.5' is not a number of bytes"),
      ("1,a,0x10", "the size '0x10' is not a number of bytes"),
      ("1,a,9223372036854775808", "the size '9223372036854775808' is not a number of bytes"),
      ("1,a,9223372036854775807", "the sizes add up to more than 9223372036854775807 bytes"),
    ])
  func noLine(_ line: String, _ reason: String) {
    let (lines, error) = read("1,first,1\n2,second,2\n\(line)\n4,fourth,4\n")
    #expect(error == Trace.LineError(line: 3, reason: reason))
    #expect(lines == [Line(object: "first", size: 1), Line(object: "second", size: 2)])
  }

  @Test("names that are not UTF-8 are repaired")
  func invalidName() {
    let (lines, error) = read(Array("1,".utf8) + [0xFF, 0x00] + Array(",7".utf8))
    #expect(error == nil)
    #expect(lines == [Line(object: "\u{FFFD}\0", size: 7)])
  }

  @Test("the description of an error contains the line and the reason")
  func description() {
    #expect("\(Trace.LineError(line: 3, reason: "the object has no name"))" == "line 3: the object has no name")
  }
}
