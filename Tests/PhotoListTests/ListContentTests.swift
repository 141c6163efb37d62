import CacheUI
import Testing

@testable import PhotoList

@Suite("The content of the list")
struct ListContentTests {
  @Test("has 56 symbols and three photographs between them, with a path each")
  func rows() {
    #expect(ListRow.all.count == 59 && Set(ListRow.all.map(\.path)).count == 59)
    #expect(ListRow.all.filter { $0.kind == .photograph }.map(\.id) == [14, 29, 44])
    #expect(ListRow.all.map(\.id) == Array(0..<59))
    #expect(ListRow.all.filter(\.changes).count == 9)
  }

  #if canImport(ImageIO) || VIPS
  @Test("is the same in each run, and has images that can be decoded")
  func drawing() throws {
    let content = try SmallContent.make()
    #expect(try content.files == SmallContent.make().files)
    for file in content.files { #expect(try ImageDecoder().decode(file.bytes).size.width > 0) }
  }

  @Test("has other bytes and another tag exactly for the images that change, until the next change")
  func change() throws {
    var content = try SmallContent.make()
    let before = content.files
    content.change()
    for (row, (former, file)) in zip(ListRow.all, zip(before, content.files)) {
      #expect((file.bytes != former.bytes) == row.changes && (file.tag != former.tag) == row.changes)
    }
    content.change()
    #expect(content.files == before)
  }

  @Test("has small images of about 1 KB, and photographs of 0.12, 0.30 and 1.11 MB")
  func sizes() throws {
    let content = try ListContent()
    for (row, file) in zip(ListRow.all, content.files) {
      let expected =
        row.kind == .symbol ? 400...1_300 : [110_000...130_000, 270_000...330_000, 1_000_000...1_220_000][row.number]
      #expect(expected.contains(file.bytes.count), "\(row.path): \(file.bytes.count)")
    }
  }
  #endif
}
