/// A hash table from 64-bit fingerprints to small numbers, with open addressing, linear probing and no tombstones.
///
/// Fingerprints must already be hashes, because their low bits select the cell. A cell has 16 bytes, while `Dictionary` would
/// hash the hash again and store whole keys. A fingerprint may have several numbers.
@usableFromInline
package struct FingerprintTable: Sendable {
  @usableFromInline
  struct Cell: Sendable {
    @usableFromInline var fingerprint: Int
    /// The number, or -1 if the cell is free.
    @usableFromInline var number: Int

    @inlinable
    init(fingerprint: Int, number: Int) { (self.fingerprint, self.number) = (fingerprint, number) }
  }

  @usableFromInline var cells: [Cell] = []
  @usableFromInline var mask = -1
  @usableFromInline package private(set) var count = 0

  package init() {}

  /// Returns the first number under `fingerprint` that satisfies the predicate.
  @inlinable
  package func first(_ fingerprint: Int, where isRight: (Int) -> Bool) -> Int? {
    guard count > 0 else { return nil }
    var place = fingerprint & mask
    while true {
      let cell = cells[place]
      if cell.number < 0 { return nil }
      if cell.fingerprint == fingerprint, isRight(cell.number) { return cell.number }
      place = (place + 1) & mask
    }
  }

  package mutating func insert(_ number: Int, _ fingerprint: Int) {
    if (count + 1) * 4 > cells.count * 3 { grow() }
    place(Cell(fingerprint: fingerprint, number: number))
    count += 1
  }

  package mutating func remove(_ number: Int, _ fingerprint: Int) {
    guard count > 0 else { return }
    var hole = fingerprint & mask
    while cells[hole].number != number || cells[hole].fingerprint != fingerprint {
      if cells[hole].number < 0 { return }
      hole = (hole + 1) & mask
    }
    // Move up the cells that were displaced because of this one.
    var next = (hole + 1) & mask
    while cells[next].number >= 0 {
      let home = cells[next].fingerprint & mask
      if (next - home) & mask >= (next - hole) & mask {
        cells[hole] = cells[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    cells[hole].number = -1
    count -= 1
  }

  package mutating func removeAll() { self = FingerprintTable() }

  private mutating func place(_ cell: Cell) {
    var place = cell.fingerprint & mask
    while cells[place].number >= 0 { place = (place + 1) & mask }
    cells[place] = cell
  }

  private mutating func grow() {
    let old = cells
    cells = [Cell](repeating: Cell(fingerprint: 0, number: -1), count: max(8, old.count * 2))
    mask = cells.count - 1
    for cell in old where cell.number >= 0 { place(cell) }
  }
}
