import Testing

@testable import PhotoList

@Suite("The table of results")
struct ResultTableTests {
  @Test("the table has a line for each pass, and a dash for each unknown value")
  func text() {
    var measured = PassResult(
      "stale, 9 changed", first: LoadStatistics([.microseconds(14), .microseconds(15)]),
      final: LoadStatistics([.milliseconds(20), .milliseconds(150)]))
    measured.firstFrame = 2
    measured.updates = 1
    measured.set(ServerCounts(requests: 2, notModified: 1, bodyBytes: 1_054))
    let seen = PassResult("AsyncImage, first", first: LoadStatistics([]), final: LoadStatistics([.microseconds(1_234_567)]))
    #expect(
      ResultTable.text([measured, seen]) == """
        pass                        images  1st frame  first ms  final ms   p95 ms  requests  304s  body bytes  updates/row
        stale, 9 changed                 2          2     0.015      85.0      150         2     1        1054         0.50
        AsyncImage, first                0          –         –      1235     1235         –     –           –            –
        """)
  }

  @Test(
    "times have three digits",
    arguments: [(999, "0.999"), (1_000, "1.00"), (9_994, "9.99"), (9_996, "10.0"), (99_960, "100")])
  func times(microseconds: Int, text: String) {
    let statistics = LoadStatistics([.microseconds(microseconds)])
    let cells = ResultTable.line(PassResult("pass", first: statistics, final: statistics)).split(separator: " ")
    #expect(cells[3] == text && cells[4] == text && cells[5] == text)
  }
}
