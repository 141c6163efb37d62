import CacheUI
import Testing

@testable import PhotoList

@Suite("The content of the list")
struct ListContentTests {
  @Test("the list has 56 symbols and three photographs between them, each with a path")
  func rows() {
    #expect(ListRow.all.count == 59 && Set(ListRow.all.map(\.path)).count == 59)
    #expect(ListRow.all.filter { $0.kind == .photograph }.map(\.id) == [14, 29, 44])
    #expect(ListRow.all.map(\.id) == Array(0..<59))
    #expect(ListRow.all.filter(\.changes).count == 9)
  }

  @Test("the content is the same in each run, and its images can be decoded")
  func drawing() throws {
    let content = try SmallContent.make()
    #expect(try content.files == SmallContent.make().files)
    for file in content.files { #expect(try ImageDecoder().decode(file.bytes).size.width > 0) }
  }

  @Test("a change replaces the bytes and the tags of some images, and the next change restores them")
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

  @Test("symbols have about 1 kB, and photographs have 0.12, 0.30 and 1.11 MB")
  func sizes() throws {
    let content = try ListContent()
    for (row, file) in zip(ListRow.all, content.files) {
      let expected =
        row.kind == .symbol ? 400...1_300 : [110_000...130_000, 270_000...330_000, 1_000_000...1_220_000][row.number]
      #expect(expected.contains(file.bytes.count), "\(row.path): \(file.bytes.count)")
    }
  }
}
