import Foundation
import Synchronization

/// Words in a mapped file that several processes share. They outlive a process that is killed.
// Proof of `@unchecked Sendable`: the memory is mapped until the process ends, and its words are accessed only atomically.
final class SharedWords: @unchecked Sendable {
  private let words: UnsafeMutablePointer<Atomic<UInt64>>

  /// Maps a file, and creates it with words of zero if it is missing.
  init(path: String, count: Int) throws {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FailedCheck("cannot open '\(path)': \(String(cString: strerror(errno)))") }
    defer { close(descriptor) }
    let size = count * MemoryLayout<Atomic<UInt64>>.stride
    guard ftruncate(descriptor, off_t(size)) == 0,
      let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), memory != MAP_FAILED
    else { throw FailedCheck("cannot map '\(path)': \(String(cString: strerror(errno)))") }
    words = memory.bindMemory(to: Atomic<UInt64>.self, capacity: count)
  }

  subscript(index: Int) -> UInt64 { words[index].load(ordering: .sequentiallyConsistent) }

  func set(_ index: Int, to value: UInt64) { words[index].store(value, ordering: .sequentiallyConsistent) }

  func add(_ number: UInt64, at index: Int) { words[index].wrappingAdd(number, ordering: .sequentiallyConsistent) }

  func subtract(_ number: UInt64, at index: Int) { words[index].wrappingSubtract(number, ordering: .sequentiallyConsistent) }

  /// Raises a word to at least `value`.
  func raise(_ index: Int, to value: UInt64) { words[index].max(value, ordering: .sequentiallyConsistent) }

  /// Replaces a word if it has the expected value, and returns whether it had.
  func exchange(_ expected: UInt64, for value: UInt64, at index: Int) -> Bool {
    words[index].compareExchange(expected: expected, desired: value, ordering: .sequentiallyConsistent).exchanged
  }
}
