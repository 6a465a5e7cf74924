// Which table is chosen. CTest also runs this with SCALECOM_ISA set, to every name and to a bad
// one.
#include <cstdlib>

#include "scalecom/core/error.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

TEST(Dispatch, TheScalarTableComesFirst) {
  ASSERT_FALSE(tables().empty());
  EXPECT_STREQ(tables().front()->isa, "scalar");
}

TEST(Dispatch, EveryTableIsComplete) {
  for (const Table* table : tables()) {
    EXPECT_TRUE(table->accumulate && table->lead && table->take && table->follow && table->keys &&
                table->zero_and_put && table->put && table->load && table->store && table->narrow &&
                table->widen)
        << table->isa;
  }
}

TEST(Dispatch, TablesAreFoundByName) {
  for (const Table* table : tables()) EXPECT_EQ(&kernels::table(table->isa), table);
}

TEST(Dispatch, AnUnknownNameIsRefusedWithWhatThereIs) {
  for (const char* name : {"", "AVX2", "sse9"}) {
    try {
      table(name);
      ADD_FAILURE() << name;
    } catch (const core::UsageError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("SCALECOM_ISA"), std::string::npos);
      EXPECT_NE(message.find("scalar"), std::string::npos);
    }
  }
}

TEST(Dispatch, TheEnvironmentChooses) {
  const char* isa = std::getenv("SCALECOM_ISA");
  if (isa == nullptr) {
    EXPECT_EQ(&table(), tables().back());
    return;
  }
  const bool known = std::any_of(tables().begin(), tables().end(), [&](const Table* table) {
    return std::string(isa) == table->isa;
  });
  if (known) {
    EXPECT_STREQ(table().isa, isa);
  } else {
    EXPECT_THROW(table(), core::UsageError);
    EXPECT_THROW(table(), core::UsageError);
  }
}

}  // namespace
}  // namespace scalecom::kernels::testing
