#if Thumbnails
import Etagere
import Foundation
import Testing

@testable import Thumbnails

@Suite("How far the run is")
struct ProgressReportTests {
  private let picture = Picture(url: URL(filePath: "/p/a.png"), name: "a.jpg")
  private let error = CacheError(.decodingFailed, reason: "not a picture")

  @Test("a terminal gets one line that moves, and a line for what went wrong")
  func terminal() async {
    let lines = Lines()
    let report = ProgressReport(total: 2, isTerminal: true) { lines.add($0) }
    await report.finished(picture, .made, Summary(made: 1))
    await report.finished(picture, .failed(error), Summary(made: 1, failed: 1))
    await report.end(Summary(made: 1, failed: 1))
    #expect(lines.text.contains("\r\u{1B}[K[###############---------------] 1/2  1 made, 0 failed"))
    #expect(lines.text.contains("] 2/2  1 made, 1 failed"))
    #expect(!lines.text.contains("made a.jpg"))
    #expect(lines.text.split(separator: "\n").count == 2)
  }

  @Test("elsewhere each picture that something was done for gets a plain line")
  func plain() async {
    let lines = Lines()
    let report = ProgressReport(total: 3, isTerminal: false) { lines.add($0) }
    await report.finished(picture, .made, Summary(made: 1))
    await report.finished(picture, .unchanged, Summary(made: 1, unchanged: 1))
    await report.finished(picture, .failed(error), Summary(made: 1, unchanged: 1, failed: 1))
    await report.end(Summary(made: 1, unchanged: 1, failed: 1))
    let text = lines.text.split(separator: "\n")
    #expect(text.count == 3 && text.first == "made a.jpg")
    #expect(text.dropFirst().first?.hasPrefix("failed /p/a.png: ") == true)
    #expect(text.last?.hasPrefix("3 pictures: 1 made, 1 unchanged, 1 failed, ") == true)
    #expect(!lines.text.contains("\u{1B}"))
  }
}
#endif
