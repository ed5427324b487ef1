"""The adaptive strategy: relations split by degree into heavy and light parts."""
