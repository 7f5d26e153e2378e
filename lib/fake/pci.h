/* SPDX-License-Identifier: MIT */
/* A card's PCI function as sysfs shows it: the head of its configuration space and its regions. The
 * addresses are invented, and there are no capabilities. */
#ifndef FAKE_PCI_H
#define FAKE_PCI_H

#include "fake/sysfs.h"

#define FAKE_PCI_CONFIG_SIZE 256u

/* Its class: without a display a card is a processing accelerator. */
uint32_t fake_pci_class(const struct fake_gpu *gpu);
/* The text of the files "config", which is binary, and "resource" of the machine's GPU g. */
void fake_pci_config(const struct fake_profile *profile, uint32_t g, struct fake_text *out);
void fake_pci_resource(const struct fake_profile *profile, uint32_t g, struct fake_text *out);
/* How drivers find it: the rest of a line that begins with "MODALIAS=". */
void fake_pci_alias(const struct fake_gpu *gpu, struct fake_text *out);

#endif
