import Etagere
import Foundation
import Testing

@testable import Thumbnails

@Suite("The progress report")
struct ProgressReportTests {
  private let image = SourceImage(url: URL(filePath: "/p/a.png"), name: "a.jpg")
  private let error = CacheError(.decodingFailed, reason: "not an image")

  @Test("a terminal gets one updated line, and a line for each error")
  func terminal() async {
    let lines = Lines()
    let report = ProgressReport(total: 2, isTerminal: true) { lines.add($0) }
    await report.finished(image, .made, Summary(made: 1))
    await report.finished(image, .failed(error), Summary(made: 1, failed: 1))
    await report.end(Summary(made: 1, failed: 1))
    #expect(lines.text.contains("\r\u{1B}[K[###############---------------] 1/2  1 made, 0 failed"))
    #expect(lines.text.contains("] 2/2  1 made, 1 failed"))
    #expect(!lines.text.contains("made a.jpg"))
    #expect(lines.text.split(separator: "\n").count == 2)
  }

  @Test("without a terminal, each written image and each error gets a plain line")
  func plain() async {
    let lines = Lines()
    let report = ProgressReport(total: 3, isTerminal: false) { lines.add($0) }
    await report.finished(image, .made, Summary(made: 1))
    await report.finished(image, .unchanged, Summary(made: 1, unchanged: 1))
    await report.finished(image, .failed(error), Summary(made: 1, unchanged: 1, failed: 1))
    await report.end(Summary(made: 1, unchanged: 1, failed: 1))
    let text = lines.text.split(separator: "\n")
    #expect(text.count == 3 && text.first == "made a.jpg")
    #expect(text.dropFirst().first?.hasPrefix("failed /p/a.png: ") == true)
    #expect(text.last?.hasPrefix("3 images: 1 made, 1 unchanged, 1 failed, ") == true)
    #expect(!lines.text.contains("\u{1B}"))
  }
}
